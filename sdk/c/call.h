/* What the files of the SDK share; not for plugins. */

#ifndef GAVEL_CALL_H
#define GAVEL_CALL_H

/* Frees what the call has allocated. */
void gavel_free_call(void);

#endif
