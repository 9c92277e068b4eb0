/* SPDX-License-Identifier: MIT */
/*
 * What threads write while they run (TRANSLATE_WORD_*, rt/translate/translate_abi.h), as ways and marks. Most words are
 * numbers of blocks, hundreds of millions of them, so those have a loop of their own.
 *
 * A block is recorded when the word behind it has come: only that tells whether all of it was executed.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "steps/engine/translate_engine.h"

/* What the kernel has in rax of a call that goes on by another one. */
#define RESTART_OTHERWISE (-516)

#define WORD_IS_BLOCK(w) ((w) < TRANSLATE_WORD_FIRST)

/* --- blocks ------------------------------------------------------------------------------------ */

static void mark_in(struct translate_engine *e, struct translated_thread *d)
{
	if (!d->is_marked_in)
		step_session_mark(e->s, d->track, STEP_MARK_RESUME, STEP_WHY_USER, 0, 0);
	d->is_marked_in = true;
}

void translated_mark_out(struct translate_engine *e, struct translated_thread *d, enum step_why why)
{
	if (d->is_marked_in)
		step_session_mark(e->s, d->track, STEP_MARK_PAUSE, why, 0, 0);
	d->is_marked_in = false;
}

/* No steps are recorded any more: --max. */
static void have_enough(struct translate_engine *e, struct translated_thread *d)
{
	e->s->run.is_over = true;
	d->has_pending = false;
	translated_mark_out(e, d, STEP_WHY_MAX);
	d->is_in = false;
	d->is_out = true;
}

static bool is_enough(const struct step_session *s)
{
	return s->options->max && s->n_steps >= s->options->max;
}

/* The next block of the thread's way. */
static inline void go(struct step_session *s, struct translated_thread *d)
{
	struct step_track *t = d->track;
	uint32_t number = d->pending.number - 1;

	if (__builtin_expect(!t->is_in_way || t->way.head.generation != d->pending_generation ||
				     step_way_is_full(&t->way),
		    0))
		step_session_begin_way(s, t, d->pending_generation, number);
	else
		step_way_add(&t->way, &number, 1);
	t->way.head.n += d->pending.n;
	t->n_steps += d->pending.n;
	s->n_steps += d->pending.n;
}

/* The rounds of those string instructions that were executed; what is not known of them was one. */
static void put_rounds(struct translated_thread *d, const struct step_block *b, uint32_t n_executed)
{
	unsigned next = 0;

	for (uint32_t i = 0; i < n_executed; i++)
		if (b->strings >> i & 1) {
			uint64_t rounds = next < d->n_rounds ? d->rounds[next++] : 1;

			step_way_rounds(&d->track->way, rounds ? rounds : 1); /* none is one, too */
		}
}

void translated_settle(struct translate_engine *e, struct translated_thread *d, uint32_t rest)
{
	struct step_session *s = e->s;
	struct step_track *t = d->track;
	uint64_t room = s->options->max ? s->options->max - s->n_steps : UINT64_MAX;
	const struct step_block *b;
	uint32_t n;

	if (!d->has_pending)
		return;
	d->has_pending = false;
	if (d->pending.flags & FAST_UNWANTED) {
		translated_mark_out(e, d, STEP_WHY_USER);
		d->n_rounds = 0;
		return;
	}
	n = rest < d->pending.n ? d->pending.n - rest : 0;
	n = n < room ? n : (uint32_t)room;
	rest = d->pending.n - n;
	if (n) {
		mark_in(e, d);
		go(s, d);
		b = &t->space->blocks.v[d->pending.number - 1];
		if (b->strings)
			put_rounds(d, b, n);
	}
	d->n_rounds = 0;
	if (n && rest) {
		t->way.head.n -= rest;
		t->n_steps -= rest;
		s->n_steps -= rest;
		t->way.head.cut = rest;
		step_session_end_run(s, t);
	}
	if (is_enough(s))
		have_enough(e, d);
}

/* Steps were made of which nothing is known. */
static void lost(struct translate_engine *e, struct translated_thread *d, const char *what)
{
	translated_settle(e, d, 0);
	step_session_lost(e->s, d->track, 0, what);
}

#define LOST_CODE "blocks whose code could not be read in the program"
#define LOST_WAY  "blocks that do not lead to what was executed behind them"

static const struct translated_rows *rows_of(const struct traced_thread *t)
{
	return ((struct translated_program *)t->program->data)->rows;
}

static void begin_block(struct translate_engine *e, struct traced_thread *t, uint32_t row)
{
	struct translated_thread *d = t->data;
	const struct translated_row *r = translated_rows_get(rows_of(t), row);
	const struct translated_fast *fast;

	translated_settle(e, d, 0);
	if (d->is_out || (r && !r->n)) /* nothing that could be executed */
		return;
	fast = translated_look(e, t->program, d, row);
	if (!fast) {
		lost(e, d, LOST_CODE);
		return;
	}
	d->has_pending = true;
	d->pending = *fast;
	d->pending_row = row;
	d->pending_generation = d->track->space->generation;
	d->is_left = false;
}

bool translated_is_open(const struct traced_thread *t)
{
	const struct translated_thread *d = t->data;

	return d->has_pending && !d->is_left &&
	       translated_rows_implied(rows_of(t), d->pending_row) > 0;
}

void translated_go_on_to(struct translate_engine *e, struct traced_thread *t, uint32_t row)
{
	struct translated_thread *d = t->data;

	while (d->has_pending && d->pending_row < row)
		begin_block(e, t, d->pending_row + 1);
	d->is_left = true;
}

/* From the pending block the thread came to `pc`. */
static void leave_to(struct translate_engine *e, struct traced_thread *t, uint64_t pc)
{
	struct translated_thread *d = t->data;
	uint32_t last;

	if (!translated_is_open(t))
		return;
	last = translated_rows_left(rows_of(t), d->pending_row, pc);
	if (last == UINT32_MAX)
		lost(e, d, LOST_WAY);
	else
		translated_go_on_to(e, t, last);
}

/* TRANSLATE_WORD_LEFT. */
static void left(struct translate_engine *e, struct traced_thread *t, uint32_t row, uint64_t pc)
{
	struct translated_thread *d = t->data;

	if (!d->has_pending || d->is_left)
		return;
	if (row == TRANSLATE_NO_BLOCK) {
		leave_to(e, t, pc);
	} else if (row + 1 == d->pending_row) {
		d->has_pending = false;
		d->n_rounds = 0;
	} else if (row - d->pending_row <= translated_rows_implied(rows_of(t), d->pending_row)) {
		translated_go_on_to(e, t, row);
	} else {
		lost(e, d, LOST_WAY);
	}
}

/* A block whose number came. */
static void come_to_block(struct translate_engine *e, struct traced_thread *t, uint32_t row)
{
	const struct translated_row *r = translated_rows_get(rows_of(t), row);

	if (r)
		leave_to(e, t, r->pc);
	begin_block(e, t, row);
}

/* --- words of known blocks ---------------------------------------------------------------------- */

static bool is_edge(const struct translated_edge *edge, uint32_t row, uint32_t next)
{
	return edge->row == row + 1 && edge->next == next;
}

/* It is in one of two places, which are in one cache line. NULL: in neither. */
static inline const struct translated_edge *known_edge(
	const struct translated_edge *edges, uint32_t row, uint32_t next)
{
	uint32_t place = translated_edge_place(row, next);

	if (__builtin_expect(is_edge(&edges[place], row, next), 1))
		return &edges[place];
	return is_edge(&edges[place ^ 1], row, next) ? &edges[place ^ 1] : NULL;
}

static bool is_known(const struct translated_program *p, uint32_t row)
{
	return row < p->fast.n && p->fast.v[row].number && !p->fast.v[row].flags;
}

/* What was executed when it came from the one to the other, as one block, becomes known. False: that needs a closer
 * look. */
static bool learn_edge(
	struct translated_program *p, struct step_space *space, uint32_t row, uint32_t next)
{
	uint32_t place = translated_edge_place(row, next), last, n = 0, number;

	if (!is_known(p, next))
		return false;
	last = translated_rows_left(p->rows, row, translated_rows_get(p->rows, next)->pc);
	if (last == UINT32_MAX)
		return false;
	for (uint32_t i = row; i <= last; i++) {
		if (!is_known(p, i))
			return false;
		n += p->fast.v[i].n;
	}
	number = last == row ? p->fast.v[row].number : translated_join(p, space, row, last);
	if (!number)
		return false;
	p->edges[place ^ 1] = p->edges[place];
	p->edges[place] = (struct translated_edge){row + 1, next, number, n};
	return true;
}

/* The words of known edges, the first of which comes from `row`, as numbers of blocks; returns how many. It calls
 * nothing, and no word has to wait for the one before: the recorder spends much of its time here. */
static __attribute__((noinline)) size_t look_up(const struct translated_edge *edges, uint32_t row,
	const uint32_t *words, size_t n, uint32_t *blocks, uint32_t *n_steps)
{
	uint32_t sum = 0;
	size_t i = 0;

	for (; i < n; i++) {
		const struct translated_edge *edge = known_edge(edges, row, words[i]);

		if (!edge)
			break;
		blocks[i] = edge->number - 1;
		sum += edge->n;
		row = words[i];
	}
	*n_steps += sum;
	return i;
}

/* Words while the way has room: each is that of a row which came behind those that the one in front implies. Returns
 * how many words. */
static size_t go_far(struct translate_engine *e, struct translated_program *p,
	struct translated_thread *d, const uint32_t *words, size_t n)
{
	struct step_way_coder *c = &d->track->way;
	uint32_t blocks[STEP_WAY_BLOCKS_AT_ONCE], row = d->pending_row, n_steps, all = 0;
	size_t i = 0;

	while (i < n && !step_way_is_full(c)) {
		size_t room = (STEP_WAY_STEPS_MAX - c->head.n) / STEP_BLOCK_INSNS_MAX, some;

		room = room < STEP_WAY_BLOCKS_AT_ONCE ? room : STEP_WAY_BLOCKS_AT_ONCE;
		n_steps = 0;
		some = look_up(
			p->edges, row, words + i, n - i < room ? n - i : room, blocks, &n_steps);
		if (!some && !learn_edge(p, d->track->space, row, words[i]))
			break;
		if (!some)
			continue; /* it is known now */
		step_way_add(c, blocks, some);
		c->head.n += n_steps;
		all += n_steps;
		i += some;
		row = words[i - 1];
	}
	d->track->n_steps += all;
	e->s->n_steps += all;
	d->pending_row = row;
	d->pending = p->fast.v[row];
	return i;
}

/* Blocks that need no look: all of it wanted, code that is known. Returns how many words. */
static size_t take_known(
	struct translate_engine *e, struct traced_thread *t, const uint32_t *words, size_t n)
{
	struct translated_program *p = t->program->data;
	struct translated_thread *d = t->data;
	struct step_track *track = d->track;

	if (e->s->options->max || !d->is_marked_in || !d->has_pending || d->is_left ||
		d->pending.flags || !track->is_in_way ||
		track->way.head.generation != p->generation ||
		d->pending_generation != p->generation ||
		p->generation != track->space->generation ||
		p->n_forgotten != track->space->n_forgotten || !is_known(p, d->pending_row))
		return 0;
	return go_far(e, p, d, words, n);
}

/* --- the other words --------------------------------------------------------------------------- */

static unsigned n_words_behind(uint32_t kind)
{
	switch (kind) {
	case TRANSLATE_WORD_REPEAT:
	case TRANSLATE_WORD_REPEATED:
		return 2;
	case TRANSLATE_WORD_FAULT:
		return 1;
	case TRANSLATE_WORD_CALL:
		return 5;
	case TRANSLATE_WORD_SIGNAL:
		return 4;
	case TRANSLATE_WORD_LEFT:
		return 3;
	default:
		return 0;
	}
}

static uint64_t number_at(const uint32_t *words)
{
	return words[0] | (uint64_t)words[1] << 32;
}

/* Of the pending block's repeated string instruction number `which`: its counter has 32 bits. */
static bool counts_in_32(const struct traced_thread *t, unsigned which)
{
	const struct translated_thread *d = t->data;
	const struct translated_row *r = translated_rows_get(
		((struct translated_program *)t->program->data)->rows, d->pending_row);
	const struct step_block *b = &d->track->space->blocks.v[d->pending.number - 1];
	const uint8_t *p = r ? r->code : NULL;

	for (uint32_t i = 0; p && i < b->n; p += b->lengths[i++])
		if (b->strings >> i & 1 && !which--)
			return memchr(p, 0x67, b->lengths[i] - 1u);
	return false;
}

static void repeated(const struct traced_thread *t, uint64_t after)
{
	struct translated_thread *d = t->data;
	uint64_t rounds = d->repeats_before - after;

	if (!d->has_pending || d->n_rounds == STEP_BLOCK_INSNS_MAX)
		return;
	if (counts_in_32(t, d->n_rounds))
		rounds = (uint32_t)rounds;
	d->rounds[d->n_rounds++] = rounds;
}

/* A repeated string instruction that faulted behind some rounds was executed so far. */
static void faulted(struct translate_engine *e, struct translated_thread *d, uint32_t rest)
{
	const struct step_block *b;
	unsigned k = 0;

	if (d->has_pending && rest && rest <= d->pending.n && d->n_rounds) {
		b = &d->track->space->blocks.v[d->pending.number - 1];
		for (uint32_t i = 0; i + rest < d->pending.n; i++)
			k += b->strings >> i & 1;
		if (k < d->n_rounds && d->rounds[k])
			rest--;
	}
	translated_settle(e, d, rest);
	d->call = CALL_NONE;
}

static bool is_exit(uint64_t number)
{
	return number == SYS_exit || number == SYS_exit_group;
}

/* The instruction of the system call in front is executed once more, by the kernel. */
static void call_again(struct translate_engine *e, struct translated_thread *d)
{
	const struct step_block *b = &d->track->space->blocks.v[d->pending.number - 1];
	struct step_block last = {.addr = b->addr, .n = 1, .lengths = {b->lengths[b->n - 1u]}};

	for (uint32_t i = 0; i + 1u < b->n; i++)
		last.addr += b->lengths[i];
	d->pending.number = step_space_block(d->track->space, &last) + 1;
	d->pending.n = 1;
	d->has_pending = true;
	translated_settle(e, d, 0);
}

void translated_interrupted(
	struct translate_engine *e, struct translated_thread *d, uint64_t number, int64_t result)
{
	if (!d->is_in || (d->call != CALL_NONE && d->has_stood)) {
		d->has_stood = false;
		return;
	}
	if (d->call != CALL_NONE)
		call_again(e, d);
	translated_settle(e, d, 0);
	step_session_mark(e->s, d->track, STEP_MARK_SYSCALL,
		d->call == CALL_OTHERWISE ? SYS_restart_syscall : (int64_t)number, result, 0);
	d->call = result == RESTART_OTHERWISE ? CALL_OTHERWISE : CALL_AGAIN;
}

static void called(struct translate_engine *e, struct translated_thread *d)
{
	uint64_t number = number_at(d->words), result = number_at(d->words + 2);
	enum call_state before = d->call;

	d->call = CALL_NONE;
	if (d->skips_call) {
		d->skips_call = false;
		return;
	}
	if (before != CALL_NONE && (int64_t)result == -EINTR)
		return; /* it was told when the signal came */
	if (before != CALL_NONE && d->is_in)
		call_again(e, d);
	if (before == CALL_OTHERWISE)
		number = SYS_restart_syscall;
	translated_settle(e, d, 0);
	if (d->is_in)
		step_session_mark(e->s, d->track, STEP_MARK_SYSCALL, (int64_t)number,
			d->words[4] ? 0 : (int64_t)result,
			d->words[4] && !is_exit(number) ? STEP_CALL_NO_RETURN : 0);
}

static void signalled(struct translate_engine *e, struct translated_thread *d)
{
	uint32_t number = d->words[0];
	bool has_address =
		number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE;

	translated_settle(e, d, 0);
	d->given.a = 0;
	if (d->is_in)
		step_session_mark(e->s, d->track, STEP_MARK_SIGNAL, number, (int32_t)d->words[1],
			has_address ? (int64_t)number_at(d->words + 2) : 0);
}

static void finish_word(struct translate_engine *e, struct traced_thread *t)
{
	struct translated_thread *d = t->data;

	/* What is said of a block is said of one that is known. */
	if ((d->kind == TRANSLATE_WORD_FAULT || d->kind == TRANSLATE_WORD_CALL ||
		    d->kind == TRANSLATE_WORD_SIGNAL) &&
		translated_is_open(t))
		lost(e, d, LOST_WAY);
	switch (d->kind) {
	case TRANSLATE_WORD_REPEAT:
		d->repeats_before = number_at(d->words);
		break;
	case TRANSLATE_WORD_REPEATED:
		repeated(t, number_at(d->words));
		break;
	case TRANSLATE_WORD_FAULT:
		faulted(e, d, d->words[0]);
		break;
	case TRANSLATE_WORD_CALL:
		called(e, d);
		break;
	case TRANSLATE_WORD_SIGNAL:
		signalled(e, d);
		break;
	case TRANSLATE_WORD_LEFT:
		left(e, t, d->words[0], number_at(d->words + 1));
		break;
	}
	d->kind = 0;
}

static void take_word(struct translate_engine *e, struct traced_thread *t, uint32_t word)
{
	struct translated_thread *d = t->data;

	if (d->kind) {
		d->words[d->n_words++] = word;
	} else if (WORD_IS_BLOCK(word)) {
		d->skips_call = false;
		come_to_block(e, t, word);
		return;
	} else {
		d->kind = word;
		d->n_words = 0;
		d->n_wanted = n_words_behind(word);
	}
	if (d->n_words == d->n_wanted)
		finish_word(e, t);
}

void translated_take(
	struct translate_engine *e, struct traced_thread *t, const uint32_t *words, size_t n)
{
	struct translated_thread *d = t->data;

	for (size_t i = 0; i < n && d->is_wanted && !d->is_out;) {
		size_t known = d->kind ? 0 : take_known(e, t, words + i, n - i);

		i += known;
		if (!known)
			take_word(e, t, words[i++]);
	}
}
