// SPDX-License-Identifier: Apache-2.0
#include "check/verify.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "bindings.h"
#include "check/reference.h"
#include "interpreter.h"
#include "io/io_error.h"
#include "moka/verify.h"
#include "usage_error.h"
#include "values.h"

namespace moka::python {

namespace {

/// A reference that Python holds.
struct Held {
  std::shared_ptr<Reference> reference;
};

/// Name, element type, shape (-1: any size), whether it is optional.
using ArrayInterface = std::tuple<std::string, std::string, std::vector<int64_t>, bool>;

std::vector<FeatureDescription> described(const std::vector<ArrayInterface>& features) {
  std::vector<FeatureDescription> out;
  for (const auto& [name, type, shape, optional] : features) {
    FeatureDescription& feature = out.emplace_back();
    feature.name = name;
    feature.optional = optional;
    feature.array.type = cli::type_named(type, "'" + name + "'");
    for (const int64_t size : shape) {
      feature.array.shape.push_back(std::max<int64_t>(size, 1));
      feature.array.ranges.push_back(size < 0 ? SizeRange{0, -1} : SizeRange{size, size});
    }
    if (std::find(shape.begin(), shape.end(), -1) == shape.end()) feature.array.ranges.clear();
  }
  return out;
}

/// A function of Python: a list of dicts of inputs becomes a list of dicts of outputs.
class Callable : public Reference {
 public:
  Callable(std::string name, std::vector<FeatureDescription> inputs, std::vector<FeatureDescription> outputs,
           nb::object function)
      : name_(std::move(name)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        function_(std::move(function)) {}
  ~Callable() override {
    const nb::gil_scoped_acquire locked;
    function_.reset();
  }
  std::string name() const override { return name_; }
  const std::vector<FeatureDescription>& inputs() const override { return inputs_; }
  const std::vector<FeatureDescription>& outputs() const override { return outputs_; }
  std::vector<Features> predict(const std::vector<Features>& items,
                                const std::function<void(size_t)>& advance) override {
    const nb::gil_scoped_acquire locked;
    try {
      std::vector<Features> out;
      for (const Features& item : items) {
        Borrowed borrowed;
        const nb::object answer = function_(to_dict(item, nb::handle()));
        if (!nb::isinstance<nb::dict>(answer)) raise_type("expected a dict of outputs, got " + kind_of(answer));
        Features& answers = out.emplace_back(to_features(answer, outputs_, borrowed));
        copy_borrowed(answers);
        advance(out.size());
      }
      return out;
    } catch (nb::python_error& e) {
      if (!e.matches(PyExc_Exception)) throw;
      throw Exception(ErrorKind::io, name_ + ": " + nb::cast<std::string>(nb::str(e.type().attr("__name__"))) + ": " +
                                         nb::cast<std::string>(nb::str(e.value())));
    } catch (const nb::builtin_exception& e) {
      throw Exception(ErrorKind::invalid_argument, name_ + ": " + e.what());
    }
  }

 private:
  std::string name_;
  std::vector<FeatureDescription> inputs_, outputs_;
  nb::object function_;
};

/// Converts errors about files and what they hold.
template <class Act>
auto opening(Act act) {
  try {
    const Unlocked unlocked;
    return act();
  } catch (const cli::UsageError& e) {
    raise(ErrorKind::invalid_argument, e.what());
  } catch (const io::IoError& e) {
    raise(ErrorKind::io, e.what());
  }
}

/// A flat list for an array of several dimensions takes the shape that fits.
FeatureValue in_described_shape(const FeatureDescription& f, const MultiArray& array) {
  const bool is_float = f.array.type == DataType::float16 || f.array.type == DataType::float32;
  const MultiArray value =
      is_float || !array.is_contiguous() ? array.converted(is_float ? f.array.type : array.type()) : array;
  const auto shape = value.shape().size() == 1 ? shape_for_count(f.array, value.count()) : std::nullopt;
  if (!shape || shape->size() == 1) return value;
  const auto owner = std::make_shared<MultiArray>(value);
  return MultiArray(owner->data(), owner->type(), *shape, {}, owner);
}

NamePairs pairs_of(const std::map<std::string, std::string>& map) { return {map.begin(), map.end()}; }

void bind_options(nb::module_& m) {
  nb::class_<VerifyOptions>(m, "Options")
      .def(nb::init<>())
      .def_rw("runs", &VerifyOptions::runs)
      .def_rw("seed", &VerifyOptions::seed)
      .def_rw("all_shapes", &VerifyOptions::all_shapes)
      .def_prop_rw(
          "map", [](const VerifyOptions& o) { return o.map; },
          [](VerifyOptions& o, const std::map<std::string, std::string>& map) { o.map = pairs_of(map); })
      .def_rw("ranges", &VerifyOptions::ranges)
      .def_prop_rw(
          "pixels", [](const VerifyOptions& o) { return std::pair(o.pixels.scale, o.pixels.bias); },
          [](VerifyOptions& o, std::pair<double, double> p) {
            o.pixels = {p.first, p.second};
          })
      .def_rw("min_snr", &VerifyOptions::min_snr, nb::arg().none())
      .def_rw("max_error", &VerifyOptions::max_error, nb::arg().none())
      .def_rw("top_k", &VerifyOptions::top_k);
}

}  // namespace

std::vector<Features> to_rows(const List& rows, const Model& model, Borrowed& borrowed) {
  const std::vector<FeatureDescription>& inputs = model.function().inputs;
  const Reading reading;
  std::vector<Features> out;
  for (nb::handle row : rows) {
    Features& features = out.emplace_back(to_features(row, inputs, borrowed, &reading));
    for (auto& [name, value] : features) {
      const auto at =
          std::find_if(inputs.begin(), inputs.end(), [&name = name](const auto& f) { return f.name == name; });
      if (at == inputs.end()) {
        std::string known;
        for (const auto& f : inputs) known += (known.empty() ? "" : ", ") + f.name;
        raise(ErrorKind::invalid_argument, "the model has no input '" + name + "'; it takes " + known);
      }
      if (const auto* array = std::get_if<MultiArray>(&value)) value = in_described_shape(*at, *array);
    }
  }
  return out;
}

void bind_verify(nb::module_& m) {
  nb::module_ module = m.def_submodule("verify", "What moka.verify is made of.");
  bind_options(module);
  nb::class_<Held>(module, "Reference", "The other side of a comparison.").def_prop_ro("name", [](const Held& h) {
    return h.reference->name();
  });
  module.def(
      "reference_of_model", [](const Model& model, std::string name) { return Held{model_reference(model, name)}; },
      nb::arg("model"), nb::arg("name"), nb::call_guard<Call>());
  module.def(
      "open_reference",
      [](const std::string& path, const Model& model, const ModelConfiguration& c, const std::string& function) {
        return opening([&] { return Held{cli::open_reference(path, model.function(), c, function)}; });
      },
      nb::arg("path"), nb::arg("model"), nb::arg("configuration"), nb::arg("function"), nb::call_guard<Call>(),
      "A model or a recording. function: of the model; empty: that of the configuration if it has several. ONNX files "
      "and PyTorch programs run in a process of their own.");
  module.def(
      "reference_of_arrays",
      [](std::string name, const std::vector<ArrayInterface>& inputs, const std::vector<ArrayInterface>& outputs,
         nb::object predict) {
        try {
          return Held{
              std::make_shared<Callable>(std::move(name), described(inputs), described(outputs), std::move(predict))};
        } catch (const cli::UsageError& e) {
          raise(ErrorKind::invalid_argument, e.what());
        }
      },
      nb::arg("name"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("predict"), nb::call_guard<Call>(),
      "A function of arrays with these names, element types and shapes, where -1 is any size, and whether they are "
      "optional.");
  module.def(
      "reference_like",
      [](const Model& model, std::string name, nb::object predict) {
        const FunctionDescription& f = model.function();
        return Held{std::make_shared<Callable>(std::move(name), f.inputs, f.outputs, std::move(predict))};
      },
      nb::arg("model"), nb::arg("name"), nb::arg("predict"), nb::call_guard<Call>(),
      "A function with the inputs and outputs of the model.");
  module.def(
      "verify",
      [](const Model& model, const Held& reference, const List& inputs, const VerifyOptions& how) {
        Borrowed borrowed;
        VerifyOptions options = how;
        options.inputs = to_rows(inputs, model, borrowed);
        options.progress = [](const VerifyProgress&) {
          const nb::gil_scoped_acquire locked;
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
        };
        std::string text;
        {
          const Unlocked unlocked;
          text = cli::rendered(cli::to_json(verify_model(model, *reference.reference, options)));
        }
        return text;
      },
      nb::arg("model"), nb::arg("reference"), nb::arg("inputs"), nb::arg("options"), nb::call_guard<Call>(),
      "The comparison as JSON, as the command line prints it.");
}

}  // namespace moka::python
