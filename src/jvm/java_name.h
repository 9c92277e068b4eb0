/* SPDX-License-Identifier: MIT */
/* Names of class files as Java programmers write them. */
#ifndef WEIR_JVM_JAVA_NAME_H
#define WEIR_JVM_JAVA_NAME_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"

/* Modified UTF-8 (zero as two bytes, characters beyond 16 bits as two surrogates) as UTF-8. */
void java_text_put(struct buf *to, struct span text);
/* `com/example/Outer$Inner` as com.example.Outer$Inner; `Main$$Lambda+0x...`, a hidden class, as
 * Main$$Lambda/0x..., as the JVM itself writes it. */
void java_class_put(struct buf *to, struct span name);
/* `(I[Ljava/lang/String;)V` as (int, java.lang.String[]). False when it is no signature; nothing is put. */
bool java_parameters_put(struct buf *to, struct span signature);

#endif
