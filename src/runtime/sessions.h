// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pictures/fitter.h"
#include "runtime/frame.h"

namespace moka::runtime {

/// The memory of one running prediction of a plan.
struct Session {
  Session(std::shared_ptr<const plan::Plan> of, size_t inputs);

  std::shared_ptr<const plan::Plan> plan;
  std::vector<const kernel::Device*> devices;  ///< accelerators that it may use
  uint32_t without = 0;                        ///< the accelerators that the plan excludes: bit i is the model's i-th
  bool observed = false;                       ///< as PlanOptions::observed
  std::vector<std::string> faults;             ///< failures of devices during the current prediction
  std::vector<std::string> remarks;            ///< for the user of the current prediction
  ExecContext context;
  std::unique_ptr<Frame> frame;
  std::vector<std::vector<std::byte>> staging;  ///< by input: its converted copy
  std::vector<std::vector<std::string>> string_staging;
  std::vector<std::unique_ptr<pictures::Fitter>> fitters;  ///< by input: of its last frame
  /// An output that the frame computes outside of its own memory.
  struct Placed {
    size_t output;
    std::shared_ptr<const void> memory;  ///< nullptr: the caller's
  };
  std::vector<Placed> placed;  ///< of the current prediction
  size_t counted;              ///< bytes that the pool counts for this session

  size_t bytes() const;
  /// Memory for the converted value of input `i`, 64-byte aligned.
  Result<std::byte*> staging_for(size_t i, const ir::Type& type);
};

/// The pool of a model's sessions. It keeps idle sessions for later predictions of the same plan, at least one, and
/// drops the least recently used. While predictions run, all sessions together take at most `limit` bytes or as many as
/// running ones recently took, whichever is more. When none runs, idle ones take at most `limit` bytes. Thread-safe.
///
/// Once running sessions take `limit` bytes, a prediction waits if as many as there are processors run: it would not
/// end earlier, and it needs an arena of its own.
class SessionPool {
 public:
  SessionPool(size_t limit, size_t most_idle) : limit_(limit), most_idle_(most_idle) { idle_.reserve(most_idle + 1); }

  /// A session that was kept for `plan`; null: the caller makes one, for which there is room now, or gives up.
  /// Allocates nothing. Errors: those of `stop`, while it waits.
  Result<std::unique_ptr<Session>> take(const plan::Plan& plan, const Stop* stop = nullptr);
  void give_up(const plan::Plan& plan);
  /// A session that was taken or made, on the thread that took it.
  void give_back(std::unique_ptr<Session> session);
  /// As give_back, but the session is of no more use.
  void discard(std::unique_ptr<Session> session);
  /// Drops all that are idle; false: there was none.
  bool drop_idle();
  /// What all sessions take, those in use and the idle ones.
  size_t bytes();
  /// Drops sessions for plans that are not among `plans`.
  void keep_only(const std::vector<std::shared_ptr<const plan::Plan>>& plans);

 private:
  using Sessions = std::vector<std::unique_ptr<Session>>;
  /// Moves idle sessions to `dropped`, the longest unused first, until they take at most `bytes` and `count`.
  void shrink(size_t bytes, size_t count, Sessions& dropped);

  const size_t limit_, most_idle_;
  std::mutex mutex_;
  std::condition_variable released_;
  Sessions idle_;  ///< last used last
  size_t idle_bytes_ = 0, used_bytes_ = 0, used_ = 0;
  size_t recent_bytes_ = 0;  ///< the most in use at the same time, forgotten little by little
};

}  // namespace moka::runtime
