// SPDX-License-Identifier: Apache-2.0
#include "moka/build.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "interpreter.h"
#include "moka/onnx_import.h"
#include "moka/program.h"
#include "values.h"

namespace moka::python {

namespace {

/// A value, and the builder that owns it.
struct Value {
  ProgramBuilder::Value value;
  nb::object builder;
};

std::vector<ProgramBuilder::Value> unbound(const std::vector<Value>& values) {
  std::vector<ProgramBuilder::Value> out;
  for (const Value& v : values) out.push_back(v.value);
  return out;
}

Message::Scalar to_scalar(nb::handle v) {
  if (nb::isinstance<nb::bool_>(v)) return nb::cast<bool>(v);
  if (nb::isinstance<nb::str>(v)) return nb::cast<std::string>(v);
  if (nb::isinstance<nb::bytes>(v)) {
    const auto b = nb::borrow<nb::bytes>(v);
    const auto* data = reinterpret_cast<const std::byte*>(b.c_str());
    return std::vector<std::byte>(data, data + b.size());
  }
  if (nb::isinstance<nb::float_>(v)) return nb::cast<double>(v);
  if (PyIndex_Check(v.ptr()) != 0) {
    const nb::object whole = nb::steal(PyNumber_Index(v.ptr()));
    if (!whole.is_valid()) throw nb::python_error();
    int overflow = 0;
    const int64_t number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
    if (overflow == 0) return number;
    const uint64_t large = PyLong_AsUnsignedLongLong(whole.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return large;
  }
  const double number = PyFloat_AsDouble(v.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

nb::object to_object(const Message::Scalar& value) {
  return std::visit(
      []<class T>(const T& v) -> nb::object {
        if constexpr (std::is_same_v<T, std::vector<std::byte>>)
          return nb::bytes(reinterpret_cast<const char*>(v.data()), v.size());
        else
          return nb::cast(v);
      },
      value);
}

/// The memory of an array, which the result keeps alive. Any thread may let go of it.
MultiArray array_of(nb::handle object) {
  const std::shared_ptr<Borrowed> held(new Borrowed, [](Borrowed* borrowed) {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire locked;
    delete borrowed;
  });
  MultiArray seen;
  if (!held->array(object, false, seen))
    raise_type("expected an array of numbers, got " + kind_of(object) + " of " +
               nb::cast<std::string>(nb::str(nb::getattr(object, "dtype", nb::str("objects")))));
  return {seen.data(), seen.type(), seen.shape(), seen.strides(), held};
}

void bind_message(nb::module_& m) {
  nb::class_<Message>(m, "Message")
      .def(nb::init<std::string_view>())
      .def_static("parse",
                  [](const std::string& type, const nb::bytes& data) {
                    return Message::parse(type, {reinterpret_cast<const std::byte*>(data.c_str()), data.size()});
                  })
      .def_static("types", &Message::types)
      .def_prop_ro("type", &Message::type)
      .def("fields",
           [](const Message& message) {
             nb::typed<nb::list, nb::typed<nb::tuple, nb::str, nb::str, nb::bool_, nb::bool_, nb::bool_, nb::str>> out;
             for (const Message::Field& f : message.fields())
               out.append(nb::make_tuple(f.name, f.type, f.repeated, f.is_message, f.is_map, f.zero));
             return out;
           })
      .def("names", &Message::names)
      .def("size", &Message::size)
      .def("which", &Message::which)
      .def("values",
           [](const Message& message, const std::string& field) {
             List out;
             for (const auto& v : message.values(field)) out.append(to_object(v));
             return out;
           })
      .def(
          "array", [](const Message& message, const std::string& f) { return read_only(to_numpy(message.array(f))); },
          nb::sig("def array(self, arg: str, /) -> numpy.ndarray"))
      .def("at", &Message::at)
      .def("all", &Message::all)
      .def("set", [](Message& message, const std::string& f, nb::handle v) { message.set(f, to_scalar(v)); })
      .def("set_list",
           [](Message& message, const std::string& f, const List& list) {
             std::vector<Message::Scalar> values;
             for (nb::handle v : list) values.push_back(to_scalar(v));
             message.set(f, values);
           })
      .def("set_array", [](Message& message, const std::string& f, nb::handle v) { message.set(f, array_of(v)); })
      .def("set_message", [](Message& message, const std::string& f, const Message& v) { message.set(f, v); })
      .def("add", &Message::add)
      .def("clear", &Message::clear)
      .def("remove", &Message::remove)
      .def("copy", &Message::copy)
      .def("serialize", [](const Message& message) {
        const std::vector<std::byte> bytes = message.serialize();
        return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      });
}

void bind_source(nb::module_& m) {
  nb::class_<ModelSource>(m, "ModelSource")
      .def(nb::init<Message>())
      .def_static("open", [](const std::string& path) { return ModelSource::open(path); })
      .def("specification", &ModelSource::specification)
      .def("weight_files", &ModelSource::weight_files)
      .def(
          "weight_file",
          [](const ModelSource& s, const std::string& f) { return read_only(to_numpy(s.weight_file(f))); },
          nb::sig("def weight_file(self, arg: str, /) -> numpy.ndarray"))
      .def("set_weight_file",
           [](ModelSource& s, const std::string& f, nb::handle content) { s.set_weight_file(f, array_of(content)); })
      .def("add_stage", &ModelSource::add_stage)
      .def("load", &ModelSource::load, nb::call_guard<Unlocked>())
      .def(
          "save",
          [](const ModelSource& source, const std::string& path, bool force) { source.save(path, overwrite(force)); },
          nb::arg("path"), nb::arg("force") = false, nb::call_guard<Unlocked>());
}

void bind_onnx(nb::module_& m) {
  nb::class_<OnnxFeature>(m, "OnnxFeature", "An input or output of an ONNX graph, and what it is in the program.")
      .def_ro("name", &OnnxFeature::name)
      .def_ro("feature", &OnnxFeature::feature)
      .def_ro("type", &OnnxFeature::type)
      .def_ro("element", &OnnxFeature::element);
  nb::class_<OnnxImport>(m, "OnnxImport")
      .def_ro("source", &OnnxImport::source)
      .def_ro("inputs", &OnnxImport::inputs)
      .def_ro("outputs", &OnnxImport::outputs)
      .def_ro("remarks", &OnnxImport::remarks);
  nb::class_<OnnxImportOptions>(m, "OnnxImportOptions")
      .def(nb::init<>())
      .def_rw("opset", &OnnxImportOptions::opset)
      .def_rw("dimensions", &OnnxImportOptions::dimensions)
      .def_rw("shapes", &OnnxImportOptions::shapes)
      .def_rw("lengths", &OnnxImportOptions::lengths)
      .def_rw("absent", &OnnxImportOptions::absent)
      .def("set_constant", [](OnnxImportOptions& options, const std::string& name, nb::handle value) {
        options.constants[name] = array_of(value);
      });
  m.def("import_onnx", [](const std::string& path, const OnnxImportOptions& options) {
    const Unlocked unlocked;
    return import_onnx(path, options);
  });
  m.def("import_onnx_bytes", [](nb::bytes model, const OnnxImportOptions& options) {
    const std::span bytes(reinterpret_cast<const std::byte*>(model.c_str()), model.size());
    const Unlocked unlocked;
    return import_onnx(bytes, options);
  });
  m.def("imported_onnx_operators", &imported_onnx_operators);
}

template <class Enum, size_t N>
Enum choice(const char* what, const std::string& name, const std::pair<const char*, Enum> (&all)[N]) {
  std::string list;
  for (const auto& [known, value] : all) {
    if (name == known) return value;
    list += std::string(list.empty() ? "'" : ", '") + known + "'";
  }
  raise(ErrorKind::invalid_argument, std::string(what) + ": expected one of " + list + ", got '" + name + "'");
}

DataType data_type(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(DataType::boolean); i++)
    if (to_string(static_cast<DataType>(i)) == name) return static_cast<DataType>(i);
  raise(ErrorKind::invalid_argument, "expected an element type such as 'float32', got '" + name + "'");
}

}  // namespace

ColorSpace color_of(const std::string& name) {
  return choice<ColorSpace>("color", name,
                            {{"rgb", ColorSpace::rgb},
                             {"bgr", ColorSpace::bgr},
                             {"grayscale", ColorSpace::grayscale},
                             {"grayscale_float16", ColorSpace::grayscale_float16}});
}

namespace {

using Range = std::pair<int64_t, int64_t>;

FeatureDescription make_feature(const std::string& name, const std::string& type, const std::string& description,
                                bool optional) {
  FeatureDescription f;
  f.name = name;
  f.description = description;
  f.optional = optional;
  f.type = choice<FeatureType>("feature", type,
                               {{"int64", FeatureType::int64},
                                {"double", FeatureType::float64},
                                {"string", FeatureType::string},
                                {"array", FeatureType::multi_array},
                                {"image", FeatureType::image},
                                {"dictionary", FeatureType::dictionary},
                                {"sequence", FeatureType::sequence},
                                {"state", FeatureType::state}});
  return f;
}

void bind_features(nb::module_& m) {
  m.def("make_feature", &make_feature);
  m.def(
      "make_array_feature",
      [](const std::string& name, const std::string& type, const std::string& description, bool optional,
         const std::string& dtype, std::vector<int64_t> shape, const std::vector<Range>& ranges,
         std::vector<std::vector<int64_t>> enumerated, std::optional<double> default_value) {
        FeatureDescription f = make_feature(name, type, description, optional);
        f.array = {data_type(dtype), std::move(shape), {}, std::move(enumerated)};
        for (const auto& [lower, upper] : ranges) f.array.ranges.push_back({lower, upper});
        f.default_value = default_value;
        return f;
      },
      nb::arg("name"), nb::arg("type"), nb::arg("description"), nb::arg("optional"), nb::arg("dtype"), nb::arg("shape"),
      nb::arg("ranges"), nb::arg("enumerated"), nb::arg("default_value").none());
  m.def("make_image_feature",
        [](const std::string& name, const std::string& description, bool optional, const std::string& color, Range size,
           const std::vector<Range>& ranges, const std::vector<Range>& enumerated) {
          FeatureDescription f = make_feature(name, "image", description, optional);
          f.image = {size.first, size.second, color_of(color)};
          if (!ranges.empty()) {
            f.image.width_range = SizeRange{ranges.at(0).first, ranges.at(0).second};
            f.image.height_range = SizeRange{ranges.at(1).first, ranges.at(1).second};
          }
          for (const Range& s : enumerated) f.image.enumerated.push_back(s);
          return f;
        });
  m.def("make_keyed_feature", [](const std::string& name, const std::string& type, const std::string& description,
                                 bool optional, bool strings, Range length) {
    FeatureDescription f = make_feature(name, type, description, optional);
    f.string_keys = strings;
    f.sequence_length = {length.first, length.second};
    return f;
  });
  m.def("describe_feature", &describe_feature);
}

ModelDescription texts_of(const nb::dict& given) {
  ModelDescription out;
  for (auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == "user_defined") {
      for (auto [k, v] : nb::cast<nb::dict>(value))
        out.user_defined[nb::cast<std::string>(k)] = nb::cast<std::string>(v);
      continue;
    }
    std::string* to = name == "short_description" ? &out.short_description
                      : name == "author"          ? &out.author
                      : name == "license"         ? &out.license
                      : name == "version"         ? &out.version
                                                  : nullptr;
    if (to == nullptr)
      raise_type("metadata: expected short_description, author, license, version or user_defined, got " + name);
    *to = nb::cast<std::string>(value);
  }
  return out;
}

using Content = ProgramBuilder::Argument::Content;

/// Lists of numbers and texts stay without an element type; what is an array keeps its own.
Content to_content(const std::string& name, nb::handle v) {
  if (nb::isinstance<Value>(v)) return nb::cast<Value>(v).value;
  if (nb::isinstance<nb::bool_>(v)) return nb::cast<bool>(v);
  if (nb::isinstance<nb::str>(v)) return nb::cast<std::string>(v);
  if (PyLong_CheckExact(v.ptr())) {
    const auto number = nb::cast<int64_t>(v);
    if (number != static_cast<int>(number))
      raise(ErrorKind::invalid_argument, "parameter '" + name + "': expected an int32, got " + std::to_string(number));
    return static_cast<int>(number);
  }
  if (PyFloat_CheckExact(v.ptr())) return static_cast<float>(nb::cast<double>(v));
  if (nb::isinstance<nb::list>(v) || nb::isinstance<nb::tuple>(v)) {
    size_t values = 0, floats = 0, texts = 0, bools = 0, all = 0;
    for (nb::handle item : nb::borrow<nb::sequence>(v)) {
      values += nb::isinstance<Value>(item);
      bools += nb::isinstance<nb::bool_>(item);
      floats += PyFloat_CheckExact(item.ptr());
      texts += nb::isinstance<nb::str>(item);
      all++;
    }
    if (all > 0 && values == all) return unbound(nb::cast<std::vector<Value>>(v));
    if (all > 0 && texts == all) return nb::cast<std::vector<std::string>>(v);
    if (bools == 0 && floats == 0 && values == 0 && texts == 0) {
      std::vector<int> out;
      if (nb::try_cast(v, out)) return out;
    } else if (bools == 0 && values == 0 && texts == 0) {
      std::vector<float> out;
      if (nb::try_cast(v, out)) return out;
    } else if (bools < all) {
      raise_type("parameter '" + name + "': expected values, numbers or texts, got a list of several kinds");
    }
  }
  return array_of(nb::module_::import_("moka._arrays").attr("as_array")(v));
}

std::vector<ProgramBuilder::Argument> to_arguments(const nb::dict& given) {
  std::vector<ProgramBuilder::Argument> out;
  for (auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    std::visit([&](auto&& v) { out.emplace_back(name, std::forward<decltype(v)>(v)); }, to_content(name, value));
  }
  return out;
}

std::vector<ProgramBuilder::Value> to_values(nb::handle given) {
  std::vector<Value> out;
  if (nb::isinstance<Value>(given)) return {nb::cast<Value>(given).value};
  if (!nb::try_cast(given, out)) raise_type("a block: expected a value or a list of values, got " + kind_of(given));
  return unbound(out);
}

nb::typed<nb::list, Value> bound(const std::vector<ProgramBuilder::Value>& values, nb::handle builder) {
  nb::list out;
  for (const auto& v : values) out.append(Value{v, nb::borrow(builder)});
  return out;
}

void bind_program(nb::module_& m) {
  nb::class_<Value>(m, "ProgramValue", "A value of a program that is being built.")
      .def_prop_ro("name", [](const Value& v) { return ProgramBuilder::name_of(v.value); })
      .def_prop_ro(
          "type", [](const Value& v) { return ProgramBuilder::type_of(v.value); },
          "The type in MIL: 'tensor<fp32, [1, 3, 8, 8]>'.")
      .def("__repr__",
           [](const Value& v) { return ProgramBuilder::name_of(v.value) + ": " + ProgramBuilder::type_of(v.value); });
  nb::class_<ProgramBuilder>(m, "ProgramBuilder")
      .def(nb::init<const std::string&>())
      .def("function", &ProgramBuilder::function)
      .def("input",
           [](nb::object self, const FeatureDescription& f) {
             return Value{nb::cast<ProgramBuilder&>(self).input(f), self};
           })
      .def("state",
           [](nb::object self, const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape) {
             return Value{nb::cast<ProgramBuilder&>(self).state(name, data_type(dtype), shape), self};
           })
      .def("constant",
           [](nb::object self, nb::handle values, const std::string& type, const std::string& name) {
             return Value{nb::cast<ProgramBuilder&>(self).constant(array_of(values), type, name), self};
           })
      .def("op",
           [](nb::handle self, const std::string& type, const Dict& arguments, const std::string& name,
              const List& blocks) {
             std::vector<ProgramBuilder::Block> functions;
             for (nb::handle function : blocks)
               functions.emplace_back([self, function](const std::vector<ProgramBuilder::Value>& inputs) {
                 return to_values(function(*nb::tuple(bound(inputs, self))));
               });
             return bound(nb::cast<ProgramBuilder&>(self).control(type, to_arguments(arguments), functions, name),
                          self);
           })
      .def("output", [](ProgramBuilder& b, const Value& v, const std::string& name) { b.output(v.value, name); })
      .def("image_output", [](ProgramBuilder& b, Value v, const std::string& color,
                              const std::string& name) { b.image_output(v.value, color_of(color), name); })
      .def("classify",
           [](ProgramBuilder& b, Value v, const List& labels, const std::string& label,
              const std::string& probabilities) {
             std::vector<int64_t> numbers;
             std::vector<std::string> texts;
             if (nb::try_cast(labels, texts))
               b.classify(v.value, texts, label, probabilities);
             else if (nb::try_cast(labels, numbers))
               b.classify(v.value, numbers, label, probabilities);
             else
               raise_type("classify: expected labels that are all text or all integers");
           })
      .def("metadata", [](ProgramBuilder& b, const Dict& texts) { b.metadata(texts_of(texts)); })
      .def("mil", &ProgramBuilder::mil)
      .def("source", &ProgramBuilder::source);
  m.def("operations_of", &operations_of);
  m.def("parameters_of", [](const std::string& operation, const std::string& opset) {
    nb::typed<nb::list, nb::typed<nb::tuple, nb::str, nb::str, nb::bool_, nb::bool_>> out;
    for (const OperationParameter& p : parameters_of(operation, opset))
      out.append(nb::make_tuple(p.name, p.type, p.constant, p.optional));
    return out;
  });
}

}  // namespace

void bind_build(nb::module_& m) {
  nb::module_ build = m.def_submodule("build", "What moka.build is made of.");
  bind_message(build);
  bind_source(build);
  bind_features(build);
  bind_program(build);
  bind_onnx(build);
}

}  // namespace moka::python
