// SPDX-License-Identifier: Apache-2.0
#include "moka/custom.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "bindings.h"
#include "interpreter.h"
#include "values.h"

namespace moka::python {

namespace {

/// A reference to a Python object that any thread may drop. All references are dropped before the interpreter ends:
/// layers and models of a script can refer to each other through Moka, where the garbage collector does not see them.
/// Used with the interpreter's lock held.
class Held {
 public:
  explicit Held(nb::object object) : object_(new nb::object(std::move(object)), release) {
    all().insert(object_.get());
  }
  const nb::object& get() const {
    if (!object_->is_valid()) throw Exception(ErrorKind::data, "the interpreter is ending");
    return *object_;
  }
  /// Drops all references.
  static void drop_all() {
    std::vector<nb::object> dropped;
    for (nb::object* object : all()) dropped.push_back(std::move(*object));
  }

 private:
  static std::set<nb::object*>& all() {
    static auto& objects = *new std::set<nb::object*>;
    return objects;
  }
  static void release(nb::object* object) {
    // After the interpreter's end, nothing is left to drop.
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire locked;
    all().erase(object);
    delete object;
  }
  std::shared_ptr<nb::object> object_;
};

/// Keeps an interrupt that a signal raised on the main thread for when this thread is back in Python. An Exception says
/// that one model failed, but the user wants the program to end.
void keep_interrupt(const nb::python_error& e) {
  if (e.matches(PyExc_KeyboardInterrupt) && gettid() == getpid()) PyErr_SetInterrupt();
}

/// Calls Python with the interpreter's lock held. Turns a Python exception into an Exception with its traceback.
template <class F>
auto with_python(const F& f) {
  const nb::gil_scoped_acquire locked;
  try {
    return f();
  } catch (nb::python_error& e) {
    const std::string text = e.what();  // runs Python code, which would meet the interrupt
    keep_interrupt(e);
    throw Exception(ErrorKind::data, text);
  } catch (nb::builtin_exception& e) {
    throw Exception(ErrorKind::data, e.what());
  } catch (nb::cast_error&) {
    throw Exception(ErrorKind::data, "it returned a value of another type");
  }
}

nb::object to_object(const ParameterValue& value) {
  struct Visitor {
    nb::object operator()(bool v) const { return nb::bool_(v); }
    nb::object operator()(int64_t v) const { return nb::int_(v); }
    nb::object operator()(double v) const { return nb::float_(v); }
    nb::object operator()(const std::string& v) const { return nb::str(v.c_str(), v.size()); }
    nb::object operator()(const std::vector<std::string>& v) const { return nb::cast(v); }
    nb::object operator()(const MultiArray& v) const { return read_only(to_numpy(v)); }
  };
  return std::visit(Visitor{}, value);
}

nb::dict parameters_of(const std::map<std::string, ParameterValue>& parameters) {
  nb::dict out;
  for (const auto& [key, value] : parameters) out[nb::str(key.c_str(), key.size())] = to_object(value);
  return out;
}

nb::list shapes_to_python(const std::vector<std::vector<int64_t>>& shapes) {
  nb::list out;
  for (const auto& s : shapes) {
    nb::list sizes;
    for (int64_t d : s) sizes.append(nb::int_(d));
    out.append(nb::tuple(sizes));
  }
  return out;
}

/// The shader's code by kind, as texts or bytes.
std::vector<ShaderCode> to_code(nb::handle said) {
  if (!nb::isinstance<nb::dict>(said)) raise_type("shader, code: expected a dict, got " + kind_of(said));
  std::vector<ShaderCode> out;
  for (auto [kind, value] : nb::cast<nb::dict>(said)) {
    ShaderCode code{nb::cast<std::string>(kind), {}};
    if (nb::isinstance<nb::str>(value)) {
      code.bytes = nb::cast<std::string>(value);
    } else if (nb::isinstance<nb::bytes>(value)) {
      const auto b = nb::cast<nb::bytes>(value);
      code.bytes.assign(static_cast<const char*>(b.data()), b.size());
    } else {
      raise_type("shader, code '" + code.kind + "': expected str or bytes, got " + kind_of(value));
    }
    out.push_back(std::move(code));
  }
  return out;
}

/// The dict that the method `shader` returns.
LayerShader to_shader(const nb::object& said) {
  if (!nb::isinstance<nb::dict>(said)) raise_type("shader: expected a dict or None, got " + kind_of(said));
  LayerShader out;
  for (auto [key, value] : nb::cast<nb::dict>(said)) {
    const auto name = nb::cast<std::string>(key);
    const auto bytes = [&, &held = value] {
      if (!nb::isinstance<nb::bytes>(held)) raise_type("shader, " + name + ": expected bytes, got " + kind_of(held));
      const auto b = nb::cast<nb::bytes>(held);
      return std::span(static_cast<const std::byte*>(b.data()), b.size());
    };
    if (name == "code") {
      out.code = to_code(value);
    } else if (name == "constants") {
      out.constants = nb::cast<std::vector<uint32_t>>(value);
    } else if (name == "parameters") {
      const auto parameters = bytes();
      out.parameters.assign(parameters.begin(), parameters.end());
    } else if (name == "groups") {
      const auto groups = nb::cast<std::vector<uint32_t>>(value);
      if (groups.size() > out.groups.size())
        throw Exception(ErrorKind::data, "shader, groups: expected at most 3, got " + std::to_string(groups.size()));
      std::copy(groups.begin(), groups.end(), out.groups.begin());
    } else if (name == "buffers") {
      for (nb::handle buffer : nb::iter(value)) {
        Borrowed borrowed;
        MultiArray array;
        if (!borrowed.array(buffer, false, array))
          raise_type("shader, buffers: expected arrays, got " + kind_of(buffer));
        out.buffers.push_back(array.converted(array.type()));
      }
    } else if (name == "seconds") {
      out.seconds = nb::cast<double>(value);
    } else {
      throw Exception(ErrorKind::data,
                      "shader: expected code, constants, parameters, groups, buffers or seconds, got '" + name + "'");
    }
  }
  return out;
}

/// A layer whose class is written in Python: Core ML's protocol with numpy arrays.
class PythonLayer final : public CustomLayer {
 public:
  explicit PythonLayer(nb::object layer)
      : has_weights_(nb::hasattr(layer, "set_weights")),
        has_shapes_(nb::hasattr(layer, "output_shapes")),
        has_shader_(nb::hasattr(layer, "shader")),
        in_place_(nb::hasattr(layer, "in_place") ? nb::cast<int>(layer.attr("in_place")) : -1),
        order_(nb::hasattr(layer, "channels_last") && nb::cast<bool>(layer.attr("channels_last"))
                   ? LayerOrder::channels_last
                   : LayerOrder::row_major),
        layer_(std::move(layer)) {}

  void set_weights(const std::vector<MultiArray>& weights) override {
    if (!has_weights_) return;
    with_python([&] {
      nb::list list;
      for (const MultiArray& w : weights) list.append(read_only(to_numpy(w)));
      layer_.get().attr("set_weights")(list);
    });
  }

  std::vector<std::vector<int64_t>> output_shapes(const std::vector<std::vector<int64_t>>& inputs) const override {
    if (!has_shapes_) return CustomLayer::output_shapes(inputs);
    return with_python([&] {
      const nb::object shapes = layer_.get().attr("output_shapes")(shapes_to_python(inputs));
      std::vector<std::vector<int64_t>> out;
      for (nb::handle shape : nb::iter(shapes)) {
        std::vector<int64_t>& sizes = out.emplace_back();
        for (nb::handle d : nb::iter(shape)) sizes.push_back(nb::cast<int64_t>(nb::int_(d)));
      }
      return out;
    });
  }

  LayerOrder order() const override { return order_; }
  LayerPlan plan(const std::vector<std::vector<int64_t>>&, int) const override { return {.in_place = in_place_}; }

  std::optional<LayerShader> shader(const std::vector<std::vector<int64_t>>& inputs) const override {
    if (!has_shader_) return std::nullopt;
    return with_python([&]() -> std::optional<LayerShader> {
      const nb::object said = layer_.get().attr("shader")(shapes_to_python(inputs));
      if (said.is_none()) return std::nullopt;
      return to_shader(said);
    });
  }

  void evaluate(const LayerCall& call) const override {
    with_python([&] {
      nb::list inputs, outputs;
      for (const ArrayView& a : call.inputs) {
        nb::object array = numpy_view(a, order_ == LayerOrder::channels_last);
        inputs.append(in_place_ >= 0 ? array : read_only(array));
      }
      for (const ArrayView& a : call.outputs) outputs.append(numpy_view(a, order_ == LayerOrder::channels_last));
      layer_.get().attr("evaluate")(inputs, outputs);
      check_given_back(inputs, call.inputs.size(), "inputs");
      check_given_back(outputs, call.outputs.size(), "outputs");
    });
  }

 private:
  /// Checks that the layer kept no reference to the arrays, because others use their memory after evaluate. The layer
  /// may have put its own objects into the list.
  static void check_given_back(const nb::list& list, size_t count, const char* what) {
    for (size_t i = 0; i < std::min(count, list.size()); i++)
      if (Py_REFCNT(nb::object(list[i]).ptr()) > 2)
        throw Exception(ErrorKind::data, std::string("evaluate keeps ") + what + "[" + std::to_string(i) +
                                             "] after it returned: keep a copy() instead");
  }

  const bool has_weights_, has_shapes_, has_shader_;
  const int in_place_;
  const LayerOrder order_;
  const Held layer_;
};

bool takes_info(const nb::object& made) {
  return nb::cast<bool>(nb::module_::import_("moka._custom").attr("takes_info")(made));
}

LayerFactory factory_of(nb::object made) {
  if (!PyCallable_Check(made.ptr()))
    raise_type("expected a class or a function that makes a layer, got " + kind_of(made));
  return [make = Held(std::move(made))](const LayerInfo& info) -> std::unique_ptr<CustomLayer> {
    return with_python([&]() -> std::unique_ptr<CustomLayer> {
      nb::object layer;
      if (takes_info(make.get())) {
        nb::object space = nb::module_::import_("types").attr("SimpleNamespace")();
        space.attr("name") = info.name;
        space.attr("class_name") = info.class_name;
        space.attr("description") = info.description;
        space.attr("input_names") = nb::cast(info.input_names);
        space.attr("inputs") = info.inputs;
        space.attr("outputs") = info.outputs;
        layer = make.get()(parameters_of(info.parameters), nb::arg("info") = space);
      } else {
        layer = make.get()(parameters_of(info.parameters));
      }
      if (!nb::hasattr(layer, "evaluate"))
        throw Exception(ErrorKind::data, "a layer without the method evaluate(inputs, outputs)");
      return std::make_unique<PythonLayer>(layer);
    });
  };
}

/// A model whose class, or function, is written in Python.
class PythonModel final : public CustomModel {
 public:
  PythonModel(nb::object predict, FunctionDescription function)
      : predict_(std::move(predict)), function_(std::move(function)) {}

  Features predict(const Features& inputs) const override {
    return with_python([&] {
      const nb::object result = predict_.get()(to_dict(inputs, nb::handle()));
      if (!nb::isinstance<nb::dict>(result)) raise_type("expected a dict of outputs, got " + kind_of(result));
      Borrowed borrowed;
      Features outputs = to_features(result, function_.outputs, borrowed);
      copy_borrowed(outputs);
      return outputs;
    });
  }

 private:
  const Held predict_;
  const FunctionDescription function_;
};

ModelFactory model_factory_of(nb::object made) {
  if (!PyCallable_Check(made.ptr())) raise_type("expected a class, a function or a path, got " + kind_of(made));
  const bool is_class = PyType_Check(made.ptr()) != 0;
  return [make = Held(std::move(made)), is_class](const CustomModelInfo& info) -> std::unique_ptr<CustomModel> {
    return with_python([&]() -> std::unique_ptr<CustomModel> {
      if (!is_class) return std::make_unique<PythonModel>(make.get(), info.function);
      const nb::object model = make.get()(nb::cast(info.function), parameters_of(info.parameters));
      if (!nb::hasattr(model, "predict"))
        throw Exception(ErrorKind::data, "a model without the method predict(inputs)");
      return std::make_unique<PythonModel>(model.attr("predict"), info.function);
    });
  };
}

enum class Kind { layer, operation, model };

/// The names that Python has registered, which are unregistered before the interpreter ends. Used with its lock held.
std::set<std::pair<Kind, std::string>>& from_python() {
  static auto& names = *new std::set<std::pair<Kind, std::string>>;
  return names;
}

struct Registrations {
  std::optional<RegistrationScope> scope{std::in_place};
};

void forget_all() {
  const auto names = std::exchange(from_python(), {});
  for (const auto& [kind, name] : names) {
    if (kind == Kind::layer) unregister_layer(name);
    if (kind == Kind::operation) unregister_operation(name);
    if (kind == Kind::model) unregister_model(name);
  }
  Held::drop_all();
}

}  // namespace

void bind_forgetting() { nb::module_::import_("atexit").attr("register")(nb::cpp_function(&forget_all)); }

void bind_custom(nb::module_& m) {
  m.def(
      "register_layer",
      [](const std::string& name, nb::object made) {
        register_layer(name, factory_of(std::move(made)));
        from_python().emplace(Kind::layer, name);
      },
      nb::arg("name"), nb::arg("factory"));
  m.def("unregister_layer", &unregister_layer, nb::arg("name"));
  m.def(
      "register_operation",
      [](const std::string& name, nb::object made, std::vector<std::string> inputs, std::vector<std::string> weights) {
        register_operation(name, factory_of(std::move(made)), {std::move(inputs), std::move(weights)});
        from_python().emplace(Kind::operation, name);
      },
      nb::arg("name"), nb::arg("factory"), nb::arg("inputs"), nb::arg("weights"));
  m.def("unregister_operation", &unregister_operation, nb::arg("name"));
  m.def(
      "register_model",
      [](const std::string& name, nb::object made) {
        register_model(name, model_factory_of(std::move(made)));
        from_python().emplace(Kind::model, name);
      },
      nb::arg("name"), nb::arg("model"));
  m.def(
      "register_model_file", [](const std::string& name, const std::string& path) { register_model_file(name, path); },
      nb::arg("name"), nb::arg("path"));
  m.def("unregister_model", &unregister_model, nb::arg("name"));
  m.def("registered_models", &registered_models);
  m.def(
      "set_linked_model_folders", [](const std::vector<std::string>& folders) { set_linked_model_folders(folders); },
      nb::arg("folders"));
  m.def("registered_layers", &registered_layers);
  m.def("registered_operations", &registered_operations);
  m.def(
      "load_plugin", [](const std::string& path) { load_plugin(path); }, nb::arg("path"), nb::call_guard<Unlocked>());
  nb::class_<Registrations>(m, "Registrations", "What is registered. `restore` makes it so again.")
      .def(nb::init<>())
      .def("restore", [](Registrations& r) { r.scope.reset(); });
  m.def("set_check_layers", &set_check_layers, nb::arg("on"));
}

}  // namespace moka::python
