/* SPDX-License-Identifier: MIT */
/*
 * A trace of real code for the reports: SQLite with ROWS rows, in memory; some 15,000 instructions
 * a row. Linked statically, at fixed addresses.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const statements[] = {
	"create table t(a integer primary key, b text, c real)",
	("with recursive n(i) as (select 1 union all select i + 1 from n where i < %d)"
	 " insert into t select i, 'name' || (i * 7919 %% 1000), i * 1.5 from n"),
	"create index x on t(b)",
	"select b, count(*), sum(c) from t group by b order by 2 desc, 1 limit 5",
	"select count(*) from t a join t b on a.a = b.a + 1 where a.b < b.b",
	"update t set c = c + 1 where b like 'name1%%'",
};

int main(int argc, char **argv)
{
	sqlite3 *db;

	if (argc != 2 || sqlite3_open(":memory:", &db))
		return 2;
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		char *statement = sqlite3_mprintf(statements[i], atoi(argv[1]));

		if (sqlite3_exec(db, statement, NULL, NULL, NULL))
			return 1;
		sqlite3_free(statement);
	}
	return 0;
}
