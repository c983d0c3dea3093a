// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "bindings.h"
#include "interpreter.h"
#include "moka/update.h"
#include "values.h"

namespace moka::python {

namespace {

UpdateParameters to_parameters(const Dict& given) {
  UpdateParameters out;
  for (const auto& [key, value] : given) {
    const std::string name(utf8_of(key));
    if (nb::isinstance<nb::bool_>(value)) {
      out[name] = nb::cast<bool>(value);
    } else if (PyIndex_Check(value.ptr()) != 0) {
      int64_t number = 0;
      if (!nb::try_cast(value, number))
        raise(ErrorKind::invalid_argument,
              name + ": expected an integer of 64 bits, got " + nb::cast<std::string>(nb::str(nb::handle(value))));
      out[name] = number;
    } else if (nb::isinstance<nb::float_>(value)) {
      out[name] = nb::cast<double>(value);
    } else {
      raise_type(name + ": expected a number or a bool, got " + kind_of(value));
    }
  }
  return out;
}

Dict to_dict(const UpdateParameters& parameters) {
  Dict out;
  for (const auto& [name, value] : parameters)
    out[nb::str(name.c_str(), name.size())] = std::visit([](auto v) { return nb::cast(v); }, value);
  return out;
}

/// A task whose examples and handler are Python's. Between runs it keeps no reference to them: they may refer to it,
/// where the garbage collector does not see it. Used with the interpreter's lock held.
class Task {
 public:
  /// `model`: a path or a source.
  template <class Given>
  static std::unique_ptr<Task> make(const Given& model, size_t count, const Dict& parameters,
                                    const ModelConfiguration& configuration, size_t kept_bytes) {
    std::unique_ptr<Task> out(new Task);
    UpdateOptions options;
    options.parameters = to_parameters(parameters);
    options.progress = [task = out.get()](const UpdateContext& context) { task->progress(context); };
    options.configuration = configuration;
    options.kept_bytes = kept_bytes;
    UpdateExamples examples(count, [task = out.get()](size_t i) { return task->read(i); });
    examples.known = [task = out.get()](size_t i) { return task->known(i); };
    examples.read_sample = [task = out.get()](size_t i, std::span<float> numbers, auto& label) {
      return task->read_sample(i, numbers, label);
    };
    const Unlocked unlocked;
    out->task_ = std::make_unique<UpdateTask>(model, std::move(examples), std::move(options));
    return out;
  }

  /// `rows`: a list of the examples, or an empty tuple. `read`: returns the dict of an example. `in_memory`: it takes
  /// no time. `progress`: gets a context.
  UpdateContext run(const nb::object& rows, const nb::object& read, bool in_memory, const nb::object& progress,
                    const Reading& reading) {
    if (run_ != nullptr) raise(ErrorKind::invalid_argument, "the task is running already");
    Run run{rows, read, in_memory, progress, reading, nb::none(), nb::none()};
    for (const FeatureDescription& f : description().training_inputs)
      if (f.type == FeatureType::multi_array && f.array.shape.size() <= 1)
        run.numbers = interned(f.name);
      else if (f.type == FeatureType::string || f.type == FeatureType::int64)
        run.label = interned(f.name);
    struct Running {
      Task& task;
      ~Running() { task.run_ = nullptr; }
    };
    const Running running{*this};
    run_ = &run;
    const Unlocked unlocked;
    return task_->run();
  }
  void resume(const Dict& parameters) { task_->resume(to_parameters(parameters)); }
  void cancel() { task_->cancel(); }
  const UpdateDescription& description() const { return task_->description(); }

 private:
  struct Run {
    nb::object rows, read;
    bool in_memory;
    nb::object progress;
    Reading reading;
    nb::object numbers, label;  ///< the names of the inputs of a sample, or None
  };

  static nb::object interned(const std::string& name) { return nb::steal(PyUnicode_InternFromString(name.c_str())); }
  static bool is_named(PyObject* key, const nb::object& name) {
    return key == name.ptr() || (PyUnicode_CheckExact(key) != 0 && PyUnicode_Check(name.ptr()) != 0 &&
                                 PyUnicode_Compare(key, name.ptr()) == 0);
  }

  void check_names(nb::handle row) const {
    if (!nb::isinstance<nb::dict>(row)) return;
    const auto& inputs = description().training_inputs;
    for (auto [key, value] : nb::borrow<nb::dict>(row)) {
      const nb::str text{nb::handle(key)};
      const std::string name(utf8_of(text));
      if (std::any_of(inputs.begin(), inputs.end(), [&](const auto& f) { return f.name == name; })) continue;
      std::string all;
      for (const auto& f : inputs) all += (all.empty() ? "'" : ", '") + f.name + "'";
      raise(ErrorKind::invalid_argument, "'" + name + "': not a training input of the model, which has " + all);
    }
  }

  void check_complete(const nb::object& row) const {
    if (!nb::isinstance<nb::dict>(row)) return;
    for (const FeatureDescription& f : description().training_inputs)
      if (!f.optional && !nb::cast<nb::dict>(row).contains(nb::str(f.name.c_str())))
        raise(ErrorKind::invalid_argument, "input '" + f.name + "': expected a value, got nothing");
  }

  /// The values of a row that are neither pictures nor in files.
  nb::object known_of(const nb::object& row) const {
    if (!nb::isinstance<nb::dict>(row)) return nb::dict();
    nb::dict out;
    for (const FeatureDescription& f : description().training_inputs) {
      const nb::str name(f.name.c_str());
      if (f.type == FeatureType::image || !nb::cast<nb::dict>(row).contains(name)) continue;
      const nb::object value = row[name];
      const bool is_text = nb::isinstance<nb::str>(value) || nb::isinstance<nb::bytes>(value);
      if (!nb::hasattr(value, "__fspath__") && (!is_text || f.type == FeatureType::string)) out[name] = value;
    }
    return std::move(out);
  }

  Features read(size_t index) const { return features_of(index, false); }
  Features known(size_t index) const { return run_->in_memory ? features_of(index, true) : Features(); }

  Features features_of(size_t index, bool known_only) const {
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    nb::object row = run_->read(index);
    const std::string place = "example " + std::to_string(index) + ": ";
    try {
      check_names(row);
      if (known_only) {
        check_complete(row);
        row = known_of(row);
      }
      Borrowed borrowed;
      Features out = to_features(row, description().training_inputs, borrowed, &run_->reading);
      copy_borrowed(out);
      return out;
    } catch (const Exception& e) {
      raise(e.kind(), place + e.what());
    } catch (const nb::builtin_exception& e) {
      raise_type(place + e.what());
    }
  }

  /// Reads a dict that holds a vector of float32 and a label, and nothing else. Returns false for other examples.
  bool read_sample(size_t index, std::span<float> numbers, std::variant<std::string, int64_t>& label) const {
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    PyObject* rows = run_->rows.ptr();
    if (PyList_CheckExact(rows) == 0 || index >= static_cast<size_t>(PyList_Size(rows))) return false;
    PyObject* row = PyList_GetItem(rows, static_cast<Py_ssize_t>(index));
    if (PyDict_CheckExact(row) == 0 || PyDict_Size(row) != 2) return false;
    bool has_numbers = false, has_label = false;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(row, &at, &key, &value) != 0;) {
      if (is_named(key, run_->numbers))
        has_numbers = copy_floats(value, numbers);
      else if (is_named(key, run_->label))
        has_label = copy_label(value, label);
    }
    return has_numbers && has_label;
  }

  static bool copy_floats(PyObject* value, std::span<float> to) {
    if (PyObject_CheckBuffer(value) == 0) return false;
    Py_buffer buffer;
    if (PyObject_GetBuffer(value, &buffer, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
      PyErr_Clear();
      return false;
    }
    const bool fits = buffer.ndim == 1 && buffer.format != nullptr && std::strcmp(buffer.format, "f") == 0 &&
                      static_cast<size_t>(buffer.len) == to.size_bytes();
    if (fits) std::memcpy(to.data(), buffer.buf, to.size_bytes());
    PyBuffer_Release(&buffer);
    return fits;
  }

  static bool copy_label(PyObject* value, std::variant<std::string, int64_t>& to) {
    if (PyUnicode_CheckExact(value) != 0) {
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(value, &size);
      if (text == nullptr) return PyErr_Clear(), false;
      to.emplace<std::string>(text, static_cast<size_t>(size));
      return true;
    }
    if (PyLong_CheckExact(value) == 0) return false;
    int overflow = 0;
    to = static_cast<int64_t>(PyLong_AsLongLongAndOverflow(value, &overflow));
    return overflow == 0;
  }

  void progress(const UpdateContext& context) const {
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    run_->progress(context);
  }

  std::unique_ptr<UpdateTask> task_;
  const Run* run_ = nullptr;  ///< the call of run(); null: none
};

}  // namespace

void bind_update_task(nb::module_& m) {
  nb::class_<UpdateMetrics>(m, "UpdateMetrics", "Core ML's metrics of an update.")
      .def_ro("loss", &UpdateMetrics::loss,
              "The loss of the mini-batch before its step; at the end of an epoch, the mean over its examples.")
      .def_ro("epoch", &UpdateMetrics::epoch, "From 0.")
      .def_ro("mini_batch", &UpdateMetrics::mini_batch, "In its epoch, from 0.")
      .def_ro("mini_batches", &UpdateMetrics::mini_batches, "Of the epoch.")
      .def("__repr__", [](const UpdateMetrics& metrics) {
        return "UpdateMetrics(loss=" + nb::cast<std::string>(nb::repr(nb::float_(metrics.loss))) +
               ", epoch=" + std::to_string(metrics.epoch) + ", mini_batch=" + std::to_string(metrics.mini_batch) +
               ", mini_batches=" + std::to_string(metrics.mini_batches) + ")";
      });
  nb::class_<UpdateContext>(m, "UpdateContext", "What moka.UpdateContext is made of.")
      .def_prop_ro("event", [](const UpdateContext& c) { return std::string(to_string(c.event)); })
      .def_ro("metrics", &UpdateContext::metrics)
      .def_prop_ro("parameters", [](const UpdateContext& c) { return to_dict(c.parameters); })
      .def_ro("is_cancelled", &UpdateContext::is_cancelled)
      .def("source", &UpdateContext::source, nb::call_guard<Unlocked>())
      .def(
          "save", [](const UpdateContext& c, const std::string& path, bool force) { c.save(path, overwrite(force)); },
          nb::arg("path"), nb::arg("force"), nb::call_guard<Unlocked>());
  nb::class_<Task>(m, "UpdateTask", "What moka.UpdateTask is made of.")
      .def_static("of_file", &Task::make<std::string>)
      .def_static("of_source", &Task::make<ModelSource>)
      .def("run", &Task::run)
      .def("resume", &Task::resume)
      .def("cancel", &Task::cancel)
      .def_prop_ro("description", &Task::description, nb::rv_policy::copy);
}

}  // namespace moka::python
