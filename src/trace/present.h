// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "trace/record.h"

/// The models that are loaded, for traces that begin later and for those who ask before they attach.
namespace moka::trace {

class Present {
 public:
  Present() = default;
  ~Present();
  Present(const Present&) = delete;
  /// From now on the model is listed. `path`: of its file; empty: none. `seconds`: how long loading took.
  void list(std::string name, std::string path, double seconds);
  /// The model's lanes; 0: it has none yet.
  ModelId model() const { return model_.load(); }
  void set_model(ModelId model) { model_.store(model); }
  /// The model's lanes, which a model without them gets: those of `name`.
  ModelId model_of(const std::string& name);

  struct Facts {
    std::string name, path;
    double seconds = 0;
    int64_t since = 0;  ///< steady clock, in nanoseconds
  };

 private:
  friend void each_present(const std::function<void(Present&, const Facts&)>& f);
  std::atomic<ModelId> model_{0};
  Facts facts_;
  bool is_listed_ = false;
};

/// Calls f for each listed model; models neither come nor go meanwhile.
void each_present(const std::function<void(Present&, const Present::Facts&)>& f);
/// Records that the listed models are there, each with its path. Call it when a trace begins.
void record_present();
/// Whether record_present() made this event.
bool is_presence(const Event& event);

/// As prepare_fork(), resume() and forget_all() of record.h: the child has the same models, which later traces name
/// anew.
void hold_present();
void release_present();

}  // namespace moka::trace
