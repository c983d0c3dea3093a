// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>

#include "asset.h"
#include "bindings.h"
#include "interpreter.h"
#include "limits.h"
#include "moka/compiler.h"
#include "values.h"

namespace moka::python {

namespace {

/// Sets what loading reports to, or None. Exceptions leave load.
void set_progress(ModelConfiguration& configuration, nb::object progress) {
  if (progress.is_none()) return;
  // Configurations are copied and dropped without the interpreter's lock.
  std::shared_ptr<nb::object> held(new nb::object(std::move(progress)), [](nb::object* object) {
    const nb::gil_scoped_acquire locked;
    delete object;
  });
  configuration.progress = [held = std::move(held)](const LoadProgress& p) {
    const nb::gil_scoped_acquire locked;
    (*held)(std::string(p.stage), p.done, p.total);
  };
}

/// One prediction with the interpreter's lock given back.
Dict predict(const Model& model, nb::handle inputs, nb::handle outputs, State* state, std::vector<std::string> wanted,
             const Reading* reading, const Limits* limits) {
  thread_local Features last;  // the names of this thread's last inputs; many numbers would need many strings
  Borrowed borrowed;
  Features in = to_features(inputs, model.function().inputs, borrowed, reading, std::exchange(last, {}));
  Features out = to_backings(outputs, model.function().outputs, borrowed);
  PredictionOptions options{state, std::move(wanted)};
  if (limits != nullptr) limits->set(options);
  {
    const Unlocked unlocked;
    model.predict(in, out, options);
  }
  for (auto& [name, value] : in)
    if (!std::holds_alternative<double>(value)) value = {};
  last = std::move(in);
  return to_dict(out, outputs);
}

/// Calls `work` on a thread of the library, with a function that raises why it must not predict.
void queue_work(nb::object work, State* state, const Limits& limits) {
  struct Queued {
    LaterCall call;
    nb::object work;
  };
  auto queued = std::make_shared<Queued>();
  queued->work = std::move(work);
  PredictionOptions options;
  options.state = state;
  limits.set(options);
  const Unlocked unlocked;
  queue_prediction(options, [queued](const PredictionOptions&, std::exception_ptr refusal) {
    const LaterCall::Made made(queued->call);
    try {
      std::exchange(queued->work, {})(nb::cpp_function([refusal] {
        if (refusal != nullptr) std::rethrow_exception(refusal);
      }));
    } catch (nb::python_error& e) {
      e.discard_as_unraisable("a queued prediction");
    }
  });
}

Model with_parameters(const Model& model, const Dict& values) {
  Borrowed borrowed;
  std::map<std::string, MultiArray> arrays;
  for (const auto& [key, value] : values) {
    const std::string name(utf8_of(key));
    MultiArray array;
    if (!borrowed.array(value, false, array))
      raise_type("parameter '" + name + "': expected an array of numbers, got " + kind_of(value));
    arrays.emplace(name, std::move(array));
  }
  const Unlocked unlocked;
  return model.with_parameters(arrays);
}

nb::typed<nb::list, Dict> predict_batch(const Model& model, const List& items, State* state,
                                        std::vector<std::string> wanted, const Reading* reading, const Limits* limits) {
  Borrowed borrowed;
  std::vector<Features> in, out;
  for (size_t i = 0; i < items.size(); i++) {
    const std::string place = "batch item " + std::to_string(i) + ": ";
    try {
      in.push_back(to_features(items[i], model.function().inputs, borrowed, reading));
    } catch (const Exception& e) {
      raise(e.kind(), place + e.what());
    } catch (const nb::builtin_exception& e) {
      raise_type(place + e.what());
    }
  }
  PredictionOptions options{state, std::move(wanted)};
  if (limits != nullptr) limits->set(options);
  {
    const Unlocked unlocked;
    out = model.predict_batch(in, options);
  }
  nb::list results;
  for (Features& f : out) {
    results.append(to_dict(f, nb::handle()));
    f = {};
  }
  return results;
}

Dict predict_rows(const Model& model, const Dict& columns, State* state, std::vector<std::string> wanted,
                  const Limits* limits) {
  Borrowed borrowed;
  Features out;
  const Features in = to_columns(columns, model.function().inputs, borrowed);
  PredictionOptions options{state, std::move(wanted)};
  if (limits != nullptr) limits->set(options);
  {
    const Unlocked unlocked;
    out = model.predict_rows(in, options);
  }
  return to_dict(out, nb::handle());
}

nb::list intermediates(const Model& model, nb::handle inputs, State* state) {
  Borrowed borrowed;
  const Reading reading;
  Features in = to_features(inputs, model.function().inputs, borrowed, &reading);
  PredictionOptions options;
  options.state = state;
  struct Seen {
    std::string operation, value;
    MultiArray array;
  };
  std::vector<Seen> seen;
  {
    const Unlocked unlocked;
    model.intermediates(
        in,
        [&](std::string_view operation, std::string_view value, const MultiArray& array) {
          seen.push_back({std::string(operation), std::string(value), array});
        },
        options);
  }
  nb::list out;
  for (const Seen& s : seen) out.append(nb::make_tuple(s.operation, s.value, to_numpy(s.array)));
  return out;
}

}  // namespace

void bind_model(nb::module_& m) {
  nb::enum_<ComputeUnits>(m, "ComputeUnits", "Core ML's MLComputeUnits: the devices that may be asked.")
      .value("ALL", ComputeUnits::all)
      .value("CPU_ONLY", ComputeUnits::cpu_only)
      .value("CPU_AND_GPU", ComputeUnits::cpu_and_gpu)
      .value("CPU_AND_NE", ComputeUnits::cpu_and_neural_engine);

  nb::enum_<MeasureKernels>(m, "MeasureKernels", "Which operations' kernels are timed while planning.")
      .value("NO", MeasureKernels::no)
      .value("MISSING", MeasureKernels::missing)
      .value("ALL", MeasureKernels::all);

  nb::class_<Pin>(m, "Pin", "Which device runs some operations.")
      .def(
          "__init__",
          [](Pin* p, std::string operations, std::string device) {
            new (p) Pin{std::move(operations), std::move(device)};
          },
          nb::arg("operations"), nb::arg("device"))
      .def_ro("operations", &Pin::operations)
      .def_ro("device", &Pin::device);
  m.def(
      "parse_pins", [](const std::string& text) { return parse_pins(text); }, nb::arg("text"), nb::call_guard<Call>(),
      "Pins as text, one a line.");

  nb::class_<ModelConfiguration>(m, "ModelConfiguration", "Core ML's MLModelConfiguration.")
      .def(nb::init<>())
      .def(nb::init<const ModelConfiguration&>(), nb::arg("other"))
      .def_rw("compute_units", &ModelConfiguration::compute_units)
      .def_rw("function_name", &ModelConfiguration::function_name, "'': the default function.")
      .def_prop_rw(
          "exact_precision", [](const ModelConfiguration& c) { return c.precision == Precision::exact; },
          [](ModelConfiguration& c, bool exact) { c.precision = exact ? Precision::exact : Precision::at_least; },
          "True: every value is rounded to its declared type; False: types are the minimum precision.")
      .def_rw("threads", &ModelConfiguration::threads,
              "The most threads of a prediction; 0: one for each core, or for each of processors.")
      .def_rw("processors", &ModelConfiguration::processors,
              "The processors that worker threads are bound to; empty: any.")
      .def_rw("memory_budget", &ModelConfiguration::memory_budget, "Bytes; 0: no limit.")
      .def_rw("idle_memory", &ModelConfiguration::idle_memory,
              "Bytes of arenas that no prediction uses, and as many of plans.")
      .def_rw("loop_limit", &ModelConfiguration::loop_limit)
      .def_rw("cached_shapes", &ModelConfiguration::cached_shapes)
      .def_rw("low_memory", &ModelConfiguration::low_memory, "Weights stay as the file stores them.")
      .def_rw("pack_while_loading", &ModelConfiguration::pack_while_loading, "No prediction packs weights.")
      .def_rw("optimize", &ModelConfiguration::optimize)
      .def_rw("reuse_buffers", &ModelConfiguration::reuse_buffers)
      .def_rw("device", &ModelConfiguration::device)
      .def_rw("pins", &ModelConfiguration::pins, "The last one that fits an operation counts.")
      .def_rw("strict", &ModelConfiguration::strict, "A refused pin or a lost device is an error, not a remark.")
      .def_rw("parameters", &ModelConfiguration::parameters, "Names of weights that with_parameters replaces.")
      .def_rw("rates", &ModelConfiguration::rates, "A path, 'default' or 'off'; '': $MOKA_RATES, else 'default'.")
      .def_rw("neural_engine_rules", &ModelConfiguration::neural_engine_rules)
      .def_rw("cache", &ModelConfiguration::cache, "A folder, 'default' or 'off'; '': $MOKA_CACHE.")
      .def_rw("kernel_cache", &ModelConfiguration::kernel_cache, "A path, 'default' or 'off'; '': $MOKA_KERNEL_CACHE.")
      .def_rw("measure_kernels", &ModelConfiguration::measure_kernels)
      .def_rw("pinned_kernels", &ModelConfiguration::pinned_kernels, "Kernels by names of operations and by shapes.");

  nb::class_<Cancellation>(m, "Cancellation",
                           "A request to stop, for any number of predictions and loads. Any thread may make it.")
      .def(nb::init<>())
      .def("cancel", &Cancellation::cancel, "What runs or begins with it raises CancelledError from now on.")
      .def_prop_ro("is_cancelled", &Cancellation::is_cancelled)
      .def("__repr__", [](const Cancellation& c) {
        return std::string("<moka.Cancellation") + (c.is_cancelled() ? " cancelled>" : ">");
      });
  nb::class_<Limits>(m, "Limits", "What ends a prediction early.")
      .def(
          "__init__",
          [](Limits* l, const Cancellation* cancellation, std::optional<double> deadline) {
            new (l) Limits(cancellation, deadline);
          },
          nb::arg("cancellation").none(), nb::arg("deadline").none());
  m.def(
      "set_limits", [](ModelConfiguration& c, const Limits& limits) { limits.set(c); }, nb::arg("configuration"),
      nb::arg("limits"));
  m.def("set_progress", &set_progress, nb::arg("configuration"), nb::arg("progress").none());

  nb::class_<ParameterDescription>(m, "ParameterDescription", "Weights that Model.with_parameters replaces.")
      .def_ro("name", &ParameterDescription::name)
      .def_prop_ro(
          "dtype", [](const ParameterDescription& p) { return std::string(to_string(p.type)); },
          "'float16' or 'float32'.")
      .def_ro("shape", &ParameterDescription::shape)
      .def("__repr__", [](const ParameterDescription& p) {
        std::string shape;
        for (const int64_t d : p.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(d);
        return "<moka.ParameterDescription '" + p.name + "' " + std::string(to_string(p.type)) + " " + shape + ">";
      });

  nb::class_<LoadTimes> times(m, "LoadTimes", "Where the time of loading went, in seconds.");
  bind_report(times, "times_text", "times_html");
  times.def_ro("open", &LoadTimes::open)
      .def_ro("import_", &LoadTimes::import)
      .def_ro("passes", &LoadTimes::passes)
      .def_ro("plan", &LoadTimes::plan)
      .def_ro("pack", &LoadTimes::pack)
      .def_ro("total", &LoadTimes::total)
      .def_ro("packed_bytes", &LoadTimes::packed_bytes)
      .def_ro("cached_bytes", &LoadTimes::cached_bytes)
      .def_ro("shared_bytes", &LoadTimes::shared_bytes);

  nb::class_<State>(m, "State", "Core ML's MLState: the buffers of a stateful model. One prediction at a time.")
      .def(
          "read", [](const State& s, const std::string& name) { return to_numpy(s.read(name)); }, nb::arg("name"),
          nb::call_guard<Call>(), nb::sig("def read(self, name: str) -> numpy.ndarray"),
          "A copy of the buffer, of its own element type. NotFoundError.")
      .def(
          "write",
          [](State& s, const std::string& name, nb::handle value) {
            Borrowed borrowed;
            FeatureDescription f;
            f.name = name;
            s.write(name, std::get<MultiArray>(to_feature(value, f, borrowed)));
          },
          nb::arg("name"), nb::arg("value"), nb::call_guard<Call>(),
          "Converts and copies. NotFoundError, InvalidArgumentError (shape).")
      .def_prop_ro("names", &State::names)
      .def("__copy__", &State::copy)
      .def(
          "__deepcopy__", [](const State& s, nb::handle) { return s.copy(); }, nb::arg("memo"))
      .def("__repr__", [](const State& s) {
        std::string text = "<moka.State";
        for (const std::string& name : s.names()) text += " '" + name + "'";
        return text + ">";
      });

  nb::class_<Model>(m, "Model")
      .def_static(
          "load", [](const std::string& path, const ModelConfiguration& c) { return Model::load(path, c); },
          nb::arg("path"), nb::arg("configuration"), nb::call_guard<Unlocked>())
      .def_static(
          "load_asset",
          [](const nb::object& specification, const Dict& blobs, const ModelConfiguration& c) {
            const ModelAssetView asset = asset_of(specification, blobs);
            const Unlocked unlocked;
            return Model::load(asset, c);
          },
          nb::arg("specification"), nb::arg("blobs"), nb::arg("configuration"))
      .def_static(
          "from_mil",
          [](const std::string& text, const Dict& blobs, const ModelConfiguration& c) {
            auto files = files_of(blobs);
            const Unlocked unlocked;
            return Model::from_mil(text, c, std::move(files));
          },
          nb::arg("text"), nb::arg("blobs"), nb::arg("configuration"))
      .def_static(
          "describe", [](const std::string& path) { return Model::describe(path); }, nb::arg("path"),
          nb::call_guard<Unlocked>())
      .def_static(
          "structure_of", [](const std::string& path) { return Model::outline(path).structure; }, nb::arg("path"),
          nb::call_guard<Unlocked>())
      .def("configured", &Model::configured, nb::arg("configuration"), nb::call_guard<Unlocked>())
      .def_prop_ro(
          "description", [](const Model& m) -> const auto& { return m.description(); },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "function", [](const Model& m) -> const auto& { return m.function(); }, nb::rv_policy::reference_internal)
      .def_prop_ro(
          "configuration", [](const Model& m) -> const auto& { return m.configuration(); },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "load_times", [](const Model& m) -> const auto& { return m.load_times(); }, nb::rv_policy::reference_internal)
      .def_prop_ro("kernel_cache_file", &Model::kernel_cache_file)
      .def_prop_ro("cache_file", &Model::cache_file)
      .def("predict", &predict, nb::arg("inputs"), nb::arg("outputs").none() = nb::none(),
           nb::arg("state").none() = nb::none(), nb::arg("wanted") = std::vector<std::string>(),
           nb::arg("reading").none() = nb::none(), nb::arg("limits").none() = nb::none(), nb::call_guard<Call>())
      .def("predict_batch", &predict_batch, nb::arg("inputs"), nb::arg("state").none() = nb::none(),
           nb::arg("wanted") = std::vector<std::string>(), nb::arg("reading").none() = nb::none(),
           nb::arg("limits").none() = nb::none(), nb::call_guard<Call>())
      .def("predict_rows", &predict_rows, nb::arg("columns"), nb::arg("state").none() = nb::none(),
           nb::arg("wanted") = std::vector<std::string>(), nb::arg("limits").none() = nb::none(),
           nb::call_guard<Call>())
      .def_prop_ro("parameters", &Model::parameters)
      .def(
          "parameter", [](const Model& model, const std::string& name) { return to_numpy(model.parameter(name)); },
          nb::arg("name"), nb::call_guard<Call>(), nb::sig("def parameter(self, name: str) -> numpy.ndarray"))
      .def("with_parameters", &with_parameters, nb::arg("values"), nb::call_guard<Call>())
      .def("new_state", &Model::new_state, nb::call_guard<Unlocked>())
      .def(
          "compute_plan",
          [](const Model& model, nb::handle inputs, bool measure, const std::vector<std::string>& wanted,
             const std::map<std::string, std::pair<double, double>>& ranges) {
            Borrowed borrowed;
            Features in;
            const Reading reading;
            if (!inputs.is_none()) in = to_features(inputs, model.function().inputs, borrowed, &reading);
            const Unlocked unlocked;
            return model.compute_plan(in, measure ? 5 : 0, wanted, ranges);
          },
          nb::arg("inputs").none() = nb::none(), nb::arg("measure") = false,
          nb::arg("wanted") = std::vector<std::string>(),
          nb::arg("ranges") = std::map<std::string, std::pair<double, double>>(), nb::call_guard<Call>())
      .def("intermediates", &intermediates, nb::arg("inputs"), nb::arg("state").none() = nb::none(),
           nb::call_guard<Call>(),
           nb::sig("def intermediates(self, inputs: object, state: State | None = None)"
                   " -> list[tuple[str, str, numpy.ndarray]]"))
      .def(
          "random_inputs",
          [](const Model& model, uint64_t seed) {
            Features inputs;
            {
              const Unlocked unlocked;
              inputs = model.random_inputs(seed);
            }
            return to_dict(inputs, nb::handle());
          },
          nb::arg("seed") = 1, nb::call_guard<Call>())
      .def("structure", &Model::structure, nb::call_guard<Unlocked>())
      .def("mil", &Model::mil, nb::arg("optimized") = false, nb::call_guard<Unlocked>());

  m.def("queue_work", &queue_work, nb::arg("work"), nb::arg("state").none(), nb::arg("limits"), nb::call_guard<Call>());
  m.def(
      "compile_asset",
      [](const nb::object& specification, const Dict& blobs, const std::string& destination, bool strict, bool force) {
        const ModelAssetView asset = asset_of(specification, blobs);
        const Unlocked unlocked;
        return texts_of(compile_model(asset, destination, {false, strict, overwrite(force)}));
      },
      nb::arg("specification"), nb::arg("blobs"), nb::arg("destination"), nb::arg("strict") = false,
      nb::arg("force") = false);
}

}  // namespace moka::python
