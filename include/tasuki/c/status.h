/* What every function returns, and the texts that go with it. */
#ifndef TASUKI_C_STATUS_H
#define TASUKI_C_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

typedef enum tasuki_status {
  TASUKI_OK = 0,
  TASUKI_BAD_HANDLE = 1,   /* null, freed, or of another kind; the text names the argument */
  TASUKI_BAD_ARGUMENT = 2, /* a null pointer, a number that the enumeration lacks, options of an unknown size */
  TASUKI_FAILED = 3,     /* any other failure: wrong or differing arguments, dead ranks, deadlines; the text says it */
  TASUKI_NO_MEMORY = 4,  /* the process has none left */
  TASUKI_INTERNAL = 5,   /* an exception that is not Tasuki's, such as one thrown by a callback */
  TASUKI_INTERRUPTED = 6 /* a wait was left early (wait_hooks.hpp); the operation may be waited for again */
} tasuki_status;

/* The text of the last call that failed in this thread; empty if none has. Valid until the next call fails there. */
const char* tasuki_last_error(void);
/* "TASUKI_OK", ...; "unknown status" for other numbers. */
const char* tasuki_status_name(int status);
/* Gives back a text that a function has handed out. Null is allowed. */
void tasuki_text_free(char* text);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
