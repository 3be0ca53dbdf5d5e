/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_CALLING_H
#define COLLET_CALLING_H

/** \file
 * For programs that report crashes: which backend was running.
 */

#include "collet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Returns 1 if the calling thread is inside a function of a backend, and hands out the function's name, such as "execute", and the
 * path of the backend's library; else 0. May be called in a signal handler. The texts live as long as the call. */
COLLET_API uint32_t collet_calling(const char** function, const char** library);

#ifdef __cplusplus
}
#endif

#endif
