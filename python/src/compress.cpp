// SPDX-License-Identifier: Apache-2.0
#include "moka/compress.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "interpreter.h"
#include "values.h"

namespace moka::python {

namespace {

using Exceptions = std::vector<std::pair<std::string, WeightCompression>>;

std::vector<Features> features_of(const ModelSource& model, const nb::list& inputs, Borrowed& borrowed) {
  std::vector<Features> out;
  if (nb::len(inputs) == 0) return out;
  const Model loaded = [&] {
    const Unlocked unlocked;
    return model.load();
  }();
  for (nb::handle item : inputs) out.push_back(to_features(item, loaded.function().inputs, borrowed));
  return out;
}

void bind_form(nb::module_& m) {
  nb::enum_<WeightForm>(m, "Kind")
      .value("unchanged", WeightForm::unchanged)
      .value("linear", WeightForm::linear)
      .value("palette", WeightForm::palette)
      .value("half", WeightForm::half);
  nb::enum_<WeightGranularity>(m, "Granularity")
      .value("tensor", WeightGranularity::tensor)
      .value("channel", WeightGranularity::channel)
      .value("group", WeightGranularity::group)
      .value("block", WeightGranularity::block);
  nb::enum_<PaletteMode>(m, "PaletteMode")
      .value("kmeans", PaletteMode::kmeans)
      .value("uniform", PaletteMode::uniform)
      .value("unique", PaletteMode::unique);
  nb::class_<WeightCompression>(m, "Form", "How to compress a weight.")
      .def(nb::init<>())
      .def(nb::init<const WeightCompression&>())
      .def_rw("kind", &WeightCompression::form)
      .def_rw("bits", &WeightCompression::bits)
      .def_rw("per", &WeightCompression::granularity)
      .def_rw("block_size", &WeightCompression::block_size)
      .def_rw("group_size", &WeightCompression::group_size)
      .def_rw("symmetric", &WeightCompression::symmetric)
      .def_rw("signed", &WeightCompression::is_signed)
      .def_rw("mode", &WeightCompression::mode)
      .def_rw("vector_size", &WeightCompression::vector_size)
      .def_rw("per_channel_scale", &WeightCompression::per_channel_scale)
      .def_rw("sparsity", &WeightCompression::sparsity)
      .def_rw("threshold", &WeightCompression::threshold)
      .def_rw("least_sparsity", &WeightCompression::least_sparsity)
      .def_rw("n", &WeightCompression::n)
      .def_rw("m", &WeightCompression::m)
      .def_rw("sparse_block", &WeightCompression::sparse_block)
      .def("__repr__", [](const WeightCompression& form) { return describe(form); });
}

void bind_results(nb::module_& m) {
  nb::class_<CompressedWeight>(m, "CompressedWeight", "What became of a weight.")
      .def_ro("name", &CompressedWeight::name)
      .def_ro("operation", &CompressedWeight::operation, "The type of the first operation that reads it.")
      .def_ro("shape", &CompressedWeight::shape)
      .def_ro("bytes_before", &CompressedWeight::bytes_before)
      .def_ro("bytes_after", &CompressedWeight::bytes_after)
      .def_ro("signal_to_noise", &CompressedWeight::signal_to_noise,
              "Signal to noise of the weight in dB. Infinite: exact.")
      .def_ro("largest_error", &CompressedWeight::largest_error)
      .def_ro("form", &CompressedWeight::form, "\"linear 8 bits, channel\". Empty: unchanged.")
      .def_ro("skipped", &CompressedWeight::skipped, "Why it could not be compressed. Empty: nothing prevented it.")
      .def("__repr__",
           [](const CompressedWeight& w) { return w.name + ": " + (w.form.empty() ? "unchanged" : w.form); });
  nb::class_<CompressedActivation>(m, "CompressedActivation", "A value that is rounded to integers of 8 bits.")
      .def_ro("name", &CompressedActivation::name)
      .def_ro("least", &CompressedActivation::least)
      .def_ro("greatest", &CompressedActivation::greatest)
      .def_ro("scale", &CompressedActivation::scale)
      .def_ro("zero_point", &CompressedActivation::zero_point)
      .def("__repr__", [](const CompressedActivation& a) {
        return a.name + ": " + std::to_string(a.least) + " to " + std::to_string(a.greatest);
      });
  nb::class_<WeightTrial>(m, "Trial", "A form of one weight alone.")
      .def_ro("form", &WeightTrial::form)
      .def_ro("bytes", &WeightTrial::bytes, "Of the weight.")
      .def_ro("signal_to_noise", &WeightTrial::signal_to_noise,
              "Signal to noise of the outputs in dB. Infinite: no change.");
  nb::class_<WeightSensitivity>(m, "Sensitivity", "What the forms of a weight do to the outputs.")
      .def_ro("name", &WeightSensitivity::name)
      .def_ro("trials", &WeightSensitivity::trials);
  nb::class_<CompressionPoint>(m, "Point", "A model between the source and the smallest one.")
      .def_ro("size", &CompressionPoint::size, "In bytes.")
      .def_ro("expected", &CompressionPoint::expected, "Signal to noise in dB, by the weights measured alone.")
      .def_ro("measured", &CompressionPoint::measured,
              "That of the worst prediction of the model, in dB. None: the model was not made.");
  nb::class_<SearchedModel>(m, "SearchedModel")
      .def_ro("model", &SearchedModel::model)
      .def_ro("weights", &SearchedModel::weights)
      .def_ro("sensitivity", &SearchedModel::sensitivity)
      .def_ro("curve", &SearchedModel::curve)
      .def_ro("size_before", &SearchedModel::size_before)
      .def_ro("size_after", &SearchedModel::size_after)
      .def_ro("signal_to_noise", &SearchedModel::signal_to_noise)
      .def_ro("bound", &SearchedModel::bound)
      .def_ro("measured_inputs", &SearchedModel::measured_inputs)
      .def_ro("checked_inputs", &SearchedModel::checked_inputs)
      .def_ro("separate", &SearchedModel::separate)
      .def_ro("seconds_before", &SearchedModel::seconds_before)
      .def_ro("seconds_after", &SearchedModel::seconds_after);
}

}  // namespace

void bind_compress(nb::module_& m) {
  nb::module_ module = m.def_submodule("compress", "What moka.compress is made of.");
  bind_form(module);
  bind_results(module);
  module.def("compress_weights", [](const ModelSource& model, const WeightCompression& form, Exceptions exceptions,
                                    int64_t least_elements, bool decompress) {
    const Unlocked unlocked;
    CompressedModel made = compress_weights(model, {form, std::move(exceptions), least_elements, nullptr, decompress});
    return std::pair(std::move(made.model), std::move(made.weights));
  });
  module.def("quantize_activations", [](const ModelSource& model, const WeightCompression& form, Exceptions exceptions,
                                        int64_t least_elements, const List& inputs, bool symmetric, bool is_signed,
                                        std::vector<std::string> unchanged) {
    Borrowed borrowed;
    CompressionOptions options{form, std::move(exceptions), least_elements, nullptr, false, ActivationCompression()};
    options.activations->inputs = features_of(model, inputs, borrowed);
    options.activations->symmetric = symmetric;
    options.activations->is_signed = is_signed;
    options.activations->unchanged = std::move(unchanged);
    const Unlocked unlocked;
    CompressedModel made = compress_weights(model, options);
    return std::tuple(std::move(made.model), std::move(made.weights), std::move(made.activations),
                      *made.signal_to_noise);
  });
  module.def(
      "search_compression",
      [](const ModelSource& model, std::optional<size_t> size, std::optional<double> signal_to_noise,
         std::vector<WeightCompression> forms, Exceptions exceptions, int64_t least_elements, const List& inputs,
         uint64_t seed, bool decompress) {
        CompressionSearch search;
        search.size = size;
        search.signal_to_noise = signal_to_noise;
        search.forms = std::move(forms);
        search.exceptions = std::move(exceptions);
        search.least_elements = least_elements;
        search.seed = seed;
        search.decompress = decompress;
        Borrowed borrowed;
        search.inputs = features_of(model, inputs, borrowed);
        const Unlocked unlocked;
        return search_compression(model, search);
      },
      nb::arg("model"), nb::arg("size").none(), nb::arg("signal_to_noise").none(), nb::arg("forms"),
      nb::arg("exceptions"), nb::arg("least_elements"), nb::arg("inputs"), nb::arg("seed"), nb::arg("decompress"));
}

}  // namespace moka::python
