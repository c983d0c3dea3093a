// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "base/stop.h"

namespace moka::kernel {
class Device;
}

/// What all models of a process share where they compute on devices with a memory of their own.
namespace moka::runtime {

class SessionPool;
class Admission;

/// Lets at most `most` predictions compute at a time. Those that wait go by models in turn, and in the order of their
/// arrival within a model: one that predicts a lot does not keep the others out. Thread-safe.
class Turns {
 public:
  explicit Turns(int most) : free_(most) {}
  /// Waits for a turn. `model`: tells models apart. Errors: those of `stop`, without a turn.
  Status take(const void* model, const Stop* stop = nullptr);
  void give_back();
  size_t count_waiting() const;
  /// The turns of a device, for all models: as many as there are processors, two at least.
  static Turns& of(const kernel::Device& device);

 private:
  struct Waiting {
    bool is_called = false;
    std::condition_variable called;
  };
  mutable std::mutex mutex_;
  int free_;
  std::map<const void*, std::deque<Waiting*>> waiting_;  ///< by model; no empty ones
  const void* last_ = nullptr;                           ///< the model that was called last
};

/// Sessions of all models that hold memory of devices. Thread-safe.
class DeviceSessions {
 public:
  static DeviceSessions& shared();

  void add(SessionPool& pool);
  void remove(SessionPool& pool);
  /// Frees what idle sessions of all models hold. false: there was none.
  bool drop_idle();

  void started();
  void ended();
  /// How many have ended so far.
  uint64_t count_ended() const;
  /// Whether one waits for memory: what ends should free its own.
  bool is_anyone_waiting() const;

 private:
  friend class Admission;
  mutable std::mutex mutex_, pools_mutex_;
  std::condition_variable changed_;
  std::set<SessionPool*> pools_;
  std::deque<const Admission*> waiting_;  ///< for memory, in the order of their arrival
  uint64_t ended_count_ = 0;
  int running_ = 0;
};

/// A new session's request for device memory. Requests that found a device full form a first-in, first-out queue, which
/// precedes new requests. So small sessions do not starve a large one.
class Admission {
 public:
  explicit Admission(DeviceSessions& all) : all_(all) {}
  Admission(const Admission&) = delete;
  /// Ends the request: the session has its memory, or gives up.
  ~Admission();
  /// Waits until no queued request precedes this one. Errors: those of `stop`.
  Status wait_for_turn(const Stop* stop);
  /// Queues the request and waits until more than `seen` sessions have ended (DeviceSessions::count_ended). False: no
  /// session is running, so none can end. Errors: those of `stop`.
  Result<bool> wait_for_end(uint64_t seen, const Stop* stop);

 private:
  DeviceSessions& all_;
  bool is_waiting_ = false;
};

}  // namespace moka::runtime
