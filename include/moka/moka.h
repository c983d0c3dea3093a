/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOKA_MOKA_H
#define MOKA_MOKA_H

/* The C interface of Moka (C99). It loads Core ML models and predicts. moka/model.h is the larger C++ interface.
 *
 * Ownership: a handle made by a function with a `moka_<thing> **` argument is released with moka_<thing>_free, which
 * accepts NULL. Strings and arrays that a function returns belong to the handle that was passed to it, and live until
 * that handle is changed or freed. Strings are UTF-8 and end with a zero byte.
 *
 * Failures: functions return a moka_status; anything but MOKA_OK leaves a message in moka_last_error, and
 * results untouched; only a prediction that fails may have changed the outputs that it was to set. No function throws
 * or aborts on wrong arguments: a NULL where a value is needed is MOKA_INVALID_ARGUMENT.
 *
 * Growth: structs that begin with struct_size may get members at their end. Set struct_size before every call that
 * takes or fills one; a MOKA_..._INIT does. Others keep their members. tests/c_api/abi.txt lists them all.
 *
 * Threads: a moka_model, moka_description, moka_compute_plan and moka_cancellation may be used by many threads at once.
 * So may the memory of a moka_shared_buffer, as far as its content allows it. moka_features, moka_state and moka_update
 * belong to one thread at a time.
 *
 * moka/plugin.h has custom layers, operations and models: a program registers its own functions with
 * moka_register_layer, moka_register_operation and moka_register_model, without a plug-in. moka/moka_files.h reads
 * images, sound and arrays from files. */

#include "moka/c_core.h"
#include "moka/c_pixel_buffer.h"
#include "moka/c_plan.h"
#include "moka/c_shared.h"
#include "moka/c_update.h"

#endif
