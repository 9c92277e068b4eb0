/* SPDX-License-Identifier: MIT */
/* Long names for lines that are read by people: what is between the brackets of a demangled name, and the type
 * that a template returns, tell less than what would be cut off behind them. */
#ifndef WEIR_CMD_REPORT_BRIEF_NAME_H
#define WEIR_CMD_REPORT_BRIEF_NAME_H

#include "base/buf.h"

/* "std::map<...>::operator[](...)" of "int& std::map<int, int>::operator[](int const&) const"; names that have no
 * brackets are put as they are. */
void brief_name_put(struct buf *to, const char *name);

#endif
