/* SPDX-License-Identifier: MIT */
/* Names of class files as Java programmers write them. */
#ifndef WEIR_CLASSFILE_JAVA_NAME_H
#define WEIR_CLASSFILE_JAVA_NAME_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"

/* What a name stands for decides which characters it may have (JVMS 4.2, 4.3). */
enum java_name_kind { JAVA_CLASS, JAVA_METHOD, JAVA_SIGNATURE, JAVA_FILE };
/* Whether a class file can have it: memory that was freed and used again rarely looks like that. */
bool java_name_is_legal(struct span name, enum java_name_kind kind);

/* Modified UTF-8 (zero as two bytes, characters beyond 16 bits as two surrogates) as UTF-8. Half a
 * character is shown as '?'. */
void java_text_put(struct buf *to, struct span text);
/* `com/example/Outer$Inner` as com.example.Outer$Inner; `Main$$Lambda+0x...`, a hidden class, as
 * Main$$Lambda/0x..., as the JVM itself writes it. */
void java_class_put(struct buf *to, struct span name);
/* `(I[Ljava/lang/String;)V` as (int, java.lang.String[]). False when it is no signature; nothing is put. */
bool java_parameters_put(struct buf *to, struct span signature);

#endif
