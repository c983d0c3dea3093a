// SPDX-License-Identifier: Apache-2.0
#pragma once
#define OS_LOG_DEFAULT 0
void os_log_error(int log, const char* text, ...);
