// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace moka::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// The options for loading the models of these tests.
constexpr size_t kBudget = size_t{512} << 20;
constexpr int64_t kLoopLimit = 1000;

/// Runs body(0) to body(count - 1) in child processes, which may use little more memory than kBudget and 20 seconds for
/// each index (longer under a sanitizer). Adds a test failure for every child that dies, hangs, or throws anything
/// other than a moka::Exception; `keep(i)` then returns where its bytes were saved. MOKA_HOSTILE_ONLY selects one
/// index, without the time limit.
void guarded(const std::string& name, int count, const std::function<void(int)>& body,
             const std::function<std::string(int)>& keep);

/// Counted over all children of one `guarded` call, for its summary line.
void count_loaded();
void count_predicted();

/// MOKA_HOSTILE_CASES, else `usual` (fewer under a sanitizer).
int case_count(int usual);
/// A number that depends only on the text and the number.
uint64_t seed_of(const std::string& text, uint64_t number);
/// Writes the bytes into the build folder's hostile_found/ and returns the path.
std::string keep_bytes(const std::string& name, const std::string& bytes);

}  // namespace moka::test
