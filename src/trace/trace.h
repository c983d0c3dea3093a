// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

/// Records what a process does with models as a trace for Perfetto.
///
///   start(path), stop()   begin and end a trace; the environment variable MOKA_TRACE also begins one
///   Span                  an event that lasts as long as a scope
///   slice, counter        an event that has just ended; a new value of a counter
///
/// Measured code calls is_on() first, which costs one predicted branch. Without a trace, a Span does nothing.
///
///   trace::Span span(trace::Lane::activity, "plan");
///   if (trace::is_on()) {
///     const trace::Label* label = trace::label("x", "convert", {{"bytes", 4096}});
///     trace::slice(trace::Lane::data, label, from, to);
///   }
///
/// Each thread records into its own memory, without a lock. One more thread encodes and writes the events (file.h).
/// docs/seeing.md describes the tracks.
namespace moka::trace {

/// The lanes that the Core ML instrument shows for a model, and `gpu`: what devices measured of their commands.
enum class Lane : uint8_t { activity, data, compute, gpu };
/// `copied`: bytes of inputs and outputs that were converted or copied. `left_out`: events that a trace lacks, because
/// its ring was full or its writer too slow.
enum class Counter : uint8_t { memory, threads, predictions, queue, copied, left_out };

/// The name and the arguments of events. Equal labels are made once and never freed, so events can point to them.
struct Label;
struct Argument {
  Argument(std::string_view n, std::string_view t) : name(n), text(t) {}
  Argument(std::string_view n, const char* t) : name(n), text(t) {}
  Argument(std::string_view n, const std::string& t) : name(n), text(t) {}
  template <class N>
  requires std::is_integral_v<N> Argument(std::string_view n, N v)
      : name(n), number(static_cast<int64_t>(v)), is_number(true) {}
  std::string_view name, text;
  int64_t number = 0;
  bool is_number = false;
};
/// `kind`: what summaries group by, for example the type of the operation. Takes no lock if the calling thread has
/// asked for an equal label before.
const Label* label(std::string_view name, std::string_view kind, std::initializer_list<Argument> arguments = {});

/// Whether a trace is being written. kUnknown: the first call of is_on() has yet to look at MOKA_TRACE.
enum State : int { kOff = 0, kOn = 1, kUnknown = 2 };
extern std::atomic<int> state;
bool find_out();
inline bool is_on() {
  const int s = state.load(std::memory_order_relaxed);
  return __builtin_expect(s != kOff, 0) && (s == kOn || find_out());
}

/// Nanoseconds of the steady clock.
int64_t now();

/// A model, which has its own lanes. 0: no model; events go to the lanes of the process.
using ModelId = uint32_t;
/// Adds a number to a name that another model has.
ModelId add_model(std::string_view name);
/// A device that works while the host does. It has its own rows on the lane `compute`. 0: the host.
using DeviceId = uint16_t;
DeviceId add_device(std::string_view name);

/// Assigns the events of the calling thread to a model for the duration of a scope.
class Use {
 public:
  explicit Use(ModelId model);
  ~Use();
  Use(const Use&) = delete;

 private:
  ModelId before_;
};

ModelId current_model();

/// Record an event of the calling thread. Events on the same lane must nest.
void begin(Lane lane, const Label* label, int64_t at);
void end(Lane lane, int64_t at);
void slice(Lane lane, const Label* label, int64_t from, int64_t to, DeviceId device = 0);
void counter(Counter counter, int64_t value);
/// Adds `change` to a counter, for example when a prediction begins or ends.
void count(Counter counter, int64_t change);

/// Records an event from its construction to its destruction.
class Span {
 public:
  Span(Lane lane, std::string_view name);
  /// `make()` returns the label. It is only called while a trace is being written.
  template <class Make>
  requires std::is_invocable_r_v<const Label*, Make> Span(Lane lane, Make&& make)
      : lane_(lane), is_on_(trace::is_on()) {
    if (is_on_) begin(lane_, make(), now());
  }
  ~Span() {
    if (is_on_) end(lane_, now());
  }
  Span(const Span&) = delete;

 private:
  Lane lane_;
  bool is_on_;
};

/// Raises a counter by one for the duration of a scope.
class Counted {
 public:
  explicit Counted(Counter counter) : counter_(counter), is_on_(is_on()) {
    if (is_on_) count(counter_, 1);
  }
  ~Counted() {
    if (is_on_) count(counter_, -1);
  }
  Counted(const Counted&) = delete;

 private:
  Counter counter_;
  bool is_on_;
};

/// Keeps only the newest events, in memory, and writes them when the trace ends. 0: no limit.
struct Ring {
  size_t bytes = 0;
  double seconds = 0;
  bool is_limited() const { return bytes > 0 || seconds > 0; }
};

/// Begins a trace. "%p" in `path` stands for the process ID. If another process is writing a trace to that file, the ID
/// is inserted before the extension. Returns the path. Ends a recording of one that attached (live.h). Errors: io,
/// invalid_argument (a trace is already being written).
Result<std::string> start(const std::string& path, bool force = false, const Ring& ring = {});
/// Ends the trace and all open spans. Does nothing without a trace. Error io: some events could not be written.
Status stop();

}  // namespace moka::trace
