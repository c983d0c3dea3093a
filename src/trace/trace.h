#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

/// Records what a process does with models, for Perfetto.
///
///   start(path), stop()   a trace begins and ends while the program runs; the variable MOKA_TRACE begins one as well
///   Span                  a stretch of time on a lane of the model that the calling thread works for
///   slice, counter        what has just ended; what changed
///
/// Code that is measured asks is_on() first, which costs one predicted branch:
///
///   trace::Span span(trace::Lane::activity, "plan");                          // does nothing while no trace is
///   written if (trace::is_on()) trace::slice(trace::Lane::data, trace::label("x", "convert", {{"bytes", 4096}}), from,
///   to);
///
/// Each thread records into memory of its own, without a lock. One thread of the trace encodes and writes (file.h).
/// docs/seeing.md describes the tracks.
namespace moka::trace {

/// Apple's three lanes of a model.
enum class Lane : uint8_t { activity, data, compute };
enum class Counter : uint8_t { memory, threads, predictions, queue };

/// What an event is called and says. Made once for each content and never freed, so that events can point to it.
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
/// `kind`: what summaries group by, for example the operation's type. Takes no lock for content that the calling thread
/// asked for before.
const Label* label(std::string_view name, std::string_view kind, std::initializer_list<Argument> arguments = {});

/// Whether a trace is written: one of several states, so that the first call can look at MOKA_TRACE.
enum State : int { kOff = 0, kOn = 1, kUnknown = 2 };
extern std::atomic<int> state;
bool find_out();
inline bool is_on() {
  const int s = state.load(std::memory_order_relaxed);
  return __builtin_expect(s != kOff, 0) && (s == kOn || find_out());
}

/// Nanoseconds of the steady clock.
int64_t now();

/// A model whose lanes are apart from others'. 0 stands for none: the lanes of the process.
using ModelId = uint32_t;
/// A name that another model has gets a number.
ModelId add_model(std::string_view name);
/// A device whose work overlaps the host's, which has rows of its own on the lane Compute. 0 stands for the host.
using DeviceId = uint16_t;
DeviceId add_device(std::string_view name);

/// The model that the calling thread works for.
class Use {
 public:
  explicit Use(ModelId model);
  ~Use();
  Use(const Use&) = delete;

 private:
  ModelId before_;
};

ModelId current_model();

/// Events of the calling thread. Those of one lane nest.
void begin(Lane lane, const Label* label, int64_t at);
void end(Lane lane, int64_t at);
void slice(Lane lane, const Label* label, int64_t from, int64_t to, DeviceId device = 0);
void counter(Counter counter, int64_t value);
/// Counts what is going on at a time, for example predictions.
void count(Counter counter, int64_t change);

/// From here to its end.
class Span {
 public:
  Span(Lane lane, std::string_view name);
  /// `make()` gives the label; it is called while a trace is written.
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

/// One more of what `counter` counts, from here to its end.
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

/// Begins a trace at `path`, in which "%p" stands for the number of the process. A file that another process is tracing
/// to stays: the number is put before the extension. Returns the path. Errors: io, invalid_argument (one is written).
Result<std::string> start(const std::string& path);
/// Ends the trace. Spans that are open end with it. Does nothing where there is none. Error io: not all could be
/// written.
Status stop();

}  // namespace moka::trace
