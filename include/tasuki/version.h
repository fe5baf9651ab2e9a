/* Tasuki's version, for C and C++: of these headers (macros) and of the library that is loaded (function). What a
 * version promises is in docs/versions.md. The build reads the three numbers here. */
#ifndef TASUKI_VERSION_H
#define TASUKI_VERSION_H

#define TASUKI_VERSION_MAJOR 0
#define TASUKI_VERSION_MINOR 1
#define TASUKI_VERSION_PATCH 0

/* 10000 * major + 100 * minor + patch, for comparisons: #if TASUKI_VERSION >= 100 */
#define TASUKI_VERSION (10000 * TASUKI_VERSION_MAJOR + 100 * TASUKI_VERSION_MINOR + TASUKI_VERSION_PATCH)

#define TASUKI_TEXT_OF_(text) #text
#define TASUKI_VERSION_TEXT_(major, minor, patch) \
  TASUKI_TEXT_OF_(major) "." TASUKI_TEXT_OF_(minor) "." TASUKI_TEXT_OF_(patch)
/* The same as text: "0.1.0". */
#define TASUKI_VERSION_TEXT TASUKI_VERSION_TEXT_(TASUKI_VERSION_MAJOR, TASUKI_VERSION_MINOR, TASUKI_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif
/* TASUKI_VERSION of the library that is loaded, which may differ from that of the headers. Local; any thread may call
 * it at any time, before there is a context and after the last. Cannot fail. */
int tasuki_version(void);
#ifdef __cplusplus
}
#endif

#endif
