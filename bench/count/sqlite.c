/* SPDX-License-Identifier: MIT */
/* SQLite: a table filled, indexed, joined and changed, in memory. */
#include <sqlite3.h>
#include <stdio.h>

static const char *const statements[] = {
	"create table t(a integer primary key, b text, c real)",
	"with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)"
	" insert into t select i, 'name' || (i * 7919 % 1000), i * 1.5 from n",
	"create index x on t(b)",
	"select b, count(*), sum(c) from t group by b order by 2 desc, 1 limit 5",
	"select count(*) from t a join t b on a.a = b.a + 1 where a.b < b.b",
	"update t set c = c + 1 where b like 'name1%'",
	"select sum(c), avg(a) from t",
};

static int print_row(void *context, int n, char **values, char **names)
{
	(void)context;
	(void)names;
	for (int i = 0; i < n; i++)
		printf("%s|", values[i]);
	puts("");
	return 0;
}

int main(void)
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		return 1;
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		if (sqlite3_exec(db, statements[i], print_row, NULL, NULL))
			return 1;
	sqlite3_close(db);
	return 0;
}
