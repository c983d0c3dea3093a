// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "command.h"
#include "convert_from_onnx.h"
#include "convert_to_onnx.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

/// From ONNX if MODEL is an ONNX file, else to ONNX.
struct ConvertOptions : ToOnnxOptions {
  std::string opset_text;
  FromOnnxOptions from;
};

int convert_model(ConvertOptions& options, const Outputs& outputs) {
  if (has_extension(options.model, ".onnx")) {
    if (options.list || options.check || options.external_data || !options.function.empty())
      throw UsageError("--check, --list, --external-data and --function are for models that become ONNX");
    FromOnnxOptions& from = options.from;
    from.model = options.model, from.destination = options.destination;
    from.opset = options.opset_text, from.json = options.json;
    return convert_from_onnx(from, outputs);
  }
  for (const auto* list : {&options.from.shapes, &options.from.dimensions, &options.from.lengths, &options.from.absent})
    if (!list->empty()) throw UsageError("--shape, --dimension, --length and --absent are for ONNX models");
  if (!options.opset_text.empty()) {
    const auto n = parse_integer(options.opset_text);
    if (!n || *n < 1 || *n > 1000)
      throw UsageError(fmt::format("--opset: expected a number, got '{}'", options.opset_text));
    options.opset = static_cast<int>(*n);
  }
  if (options.check && options.list) throw UsageError("--check: --list writes nothing that could be checked");
  if (options.destination.empty() && !options.list) throw UsageError("-o FILE is needed, or --list");
  if (!options.destination.empty() && !has_extension(options.destination, ".onnx"))
    throw UsageError(fmt::format("'{}': expected a name that ends in .onnx", options.destination));
  return convert_to_onnx(options, outputs);
}

}  // namespace

Command add_convert(Arguments parent) {
  auto options = std::make_shared<ConvertOptions>();
  Arguments app = parent.add_subcommand("convert", "Write a model as ONNX, or an ONNX model as an .mlpackage");
  app.add_option("MODEL", options->model, "An .mlmodel, .mlpackage or .mlmodelc, or an .onnx file")
      .required()
      .option_text(" ");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--output", options->destination, {{".onnx", FileKind::onnx}, kPackageName},
                   "The .onnx file or .mlpackage to write; an older one is replaced")
      .option_text("FILE");
  app.add_option("--function", options->function, "A function of an ML program (default: its default one)")
      .option_text("NAME");
  app.add_option("--opset", options->opset_text,
                 "ONNX's operators, 17 to 23, or Core ML's, ios17 to ios26 (default: the oldest that will do)")
      .option_text("VERSION");
  app.add_option("--shape", options->from.shapes,
                 "The shape of an input of an ONNX model; what is not given stays flexible")
      .option_text("NAME=SIZES");
  app.add_option("--dimension", options->from.dimensions, "The size of a named dimension of an ONNX model")
      .option_text("NAME=SIZE");
  app.add_option("--length", options->from.lengths,
                 "The length of an input that is a sequence; its elements become the inputs NAME_0 and so on")
      .option_text("NAME=N");
  app.add_option("--absent", options->from.absent, "An optional input of an ONNX model that has no value")
      .option_text("NAME");
  app.add_flag("--external-data", options->external_data,
               "Write weights to FILE.data, as models above 64 MB always do");
  app.add_flag("--check", options->check,
               "Let onnx.checker with full shape inference check the file before it is called written; Python\n"
               "runs it ($MOKA_PYTHON, else python3) and needs the package onnx");
  app.add_flag("--list", options->list, "List the operations that ONNX cannot express, and write nothing");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka convert Classifier.mlpackage -o classifier.onnx");
  return {app, "moka convert Classifier.mlpackage -o classifier.onnx",
          [options, outputs] { return convert_model(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
