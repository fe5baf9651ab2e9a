/* Tasuki's interface for C (C99), for C++ without exceptions, and for languages that can call C.
 *
 * Handles are opaque; each noun has its own type of handle. A call with a handle that is null, freed, or of another
 * kind returns TASUKI_BAD_HANDLE and touches nothing. Every function that makes something has its handle as the last
 * argument and writes to it only when it succeeds; every free takes the handle's address and sets it to null.
 *
 * Errors: every function returns a tasuki_status; TASUKI_OK is 0. tasuki_last_error() gives the text of the calling
 * thread's last failure. No function aborts the program, and no exception leaves a function. A collective function that
 * fails on one rank fails on all of them, with the text of the rank that found the problem. Exception: a rank whose
 * context (or, for halos, every field) is a bad handle returns at once, and the others' waits end at the deadline.
 *
 * Options are structs that begin with their own size, so that later versions may add members at their end. Begin with
 * the initialiser of the same name, which holds the defaults, and change what you like; a null pointer means the
 * defaults:
 *
 *     tasuki_field_options options = TASUKI_FIELD_OPTIONS_INIT;
 *     options.copies = 2;
 *
 * Dimensions: dimension 0 is the slowest in memory, the last one is contiguous, as in C's own arrays.
 *
 * Texts that a function hands out (char** arguments) end with a zero and are given back by tasuki_text_free.
 *
 * Threads: one thread at a time may use the objects of one context. Different contexts may be used by different
 * threads.
 */
#ifndef TASUKI_TASUKI_H
#define TASUKI_TASUKI_H

#include "tasuki/c/context.h"
#include "tasuki/c/field.h"
#include "tasuki/c/gpu.h"
#include "tasuki/c/grid.h"
#include "tasuki/c/layout.h"
#include "tasuki/c/memory.h"
#include "tasuki/c/operation.h"
#include "tasuki/c/operations.h"
#include "tasuki/c/status.h"
#include "tasuki/c/types.h"
#include "tasuki/version.h"

#endif
