// SPDX-License-Identifier: Apache-2.0
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOKA_C_SHARED_H
#define MOKA_C_SHARED_H

/* Memory that processes and devices share, in C: a part of moka/moka.h (docs/sharing-memory.md). */

#include "moka/c_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arrays in its memory are inputs and output backings without a copy, on the CPU and on a GPU that computes in the
 * host's memory. Free it only when no prediction uses them. */
typedef struct moka_shared_buffer moka_shared_buffer;

/* New memory of zeros, in a file of memfd_create that cannot shrink. */
MOKA_API moka_status moka_shared_buffer_new(size_t bytes, moka_shared_buffer** buffer);
/* Memory behind a descriptor of memfd_create, which another process may have sent: `bytes` bytes from `offset` on; 0:
 * to its end. The descriptor remains the caller's. */
MOKA_API moka_status moka_shared_buffer_open(int descriptor, uint64_t offset, size_t bytes,
                                             moka_shared_buffer** buffer);
/* Memory of the caller, which outlives the buffer. A GPU copies it unless it is whole pages. */
MOKA_API moka_status moka_shared_buffer_over(void* data, size_t bytes, moka_shared_buffer** buffer);
MOKA_API void moka_shared_buffer_free(moka_shared_buffer* buffer);
MOKA_API void* moka_shared_buffer_data(const moka_shared_buffer* buffer);   /* NULL for NULL */
MOKA_API size_t moka_shared_buffer_bytes(const moka_shared_buffer* buffer); /* 0 for NULL */
/* The descriptor for other processes, which the buffer closes; -1 for memory of the caller and for NULL. */
MOKA_API int moka_shared_buffer_file_descriptor(const moka_shared_buffer* buffer);

#ifdef __cplusplus
}
#endif

#endif
