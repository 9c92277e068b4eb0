/* SPDX-License-Identifier: MIT */
/* Lua: tables, sorting, recursion, strings and patterns. Many short calls. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

static const char program[] =
	"local t = {}\n"
	"for i = 1, 200000 do t[i] = (i * 7919) % 10007 end\n"
	"table.sort(t)\n"
	"local s = 0\n"
	"for i = 1, #t do s = s + t[i] * i end\n"
	"local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
	"local words, seen = {}, {}\n"
	"for i = 1, 30000 do words[#words + 1] = string.format('%d:%s', i, tostring(i * i)) end\n"
	"for _, w in ipairs(words) do local k = w:match('^(%d+):') seen[k] = (seen[k] or 0) + #w end\n"
	"print(s, fib(24), #table.concat(words, ','))\n";

int main(void)
{
	lua_State *l = luaL_newstate();
	int failed;

	luaL_openlibs(l);
	failed = luaL_loadbuffer(l, program, sizeof(program) - 1, "=program") || lua_pcall(l, 0, 0, 0);
	if (failed)
		puts(lua_tostring(l, -1));
	lua_close(l);
	return failed;
}
