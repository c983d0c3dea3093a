// SPDX-License-Identifier: Apache-2.0
#include "edit_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "edit_values.h"
#include "moka/edit.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

/// "input:x" and "output:x" are on one side.
edit::Side take_side(std::string& name) {
  for (const auto& [prefix, side] :
       {std::pair{std::string_view("input:"), edit::Side::inputs}, {std::string_view("output:"), edit::Side::outputs}})
    if (name.starts_with(prefix)) {
      name.erase(0, prefix.size());
      return side;
    }
  return edit::Side::any;
}

ModelSource rename(const ModelSource& model, const std::string& value) {
  std::map<edit::Side, edit::Names> sides;
  for (const std::string& pair : listed(value)) {
    auto [from, to] = split(pair, "OLD=NEW");
    sides[take_side(from)][from] = to;
  }
  ModelSource out = model;
  for (const auto& [side, names] : sides) out = edit::rename_features(out, names, side);
  return out;
}

edit::Names names_of(const std::string& value) {
  edit::Names out;
  for (const std::string& pair : listed(value)) out.insert(split(pair, "OLD=NEW"));
  return out;
}

ModelSource set_type(const ModelSource& model, const std::string& value) {
  ModelSource out = model;
  for (const std::string& pair : listed(value)) {
    auto [name, type] = split(pair, "NAME=TYPE");
    const edit::Side side = take_side(name);
    out = edit::set_type(out, name, type, side);
  }
  return out;
}

template <const char* const& field>
ModelSource set_text(const ModelSource& model, const std::string& value) {
  return edit::set_metadata(model, field, value);
}
constexpr const char* kAuthor = "author";
constexpr const char* kLicense = "license";
constexpr const char* kVersion = "versionString";
constexpr const char* kDescription = "shortDescription";

ModelSource set_image(const ModelSource& model, const std::string& value) {
  auto [name, text] = split(value, "NAME=COLOR");
  const edit::Side side = take_side(name);
  Settings settings(text, {"color", "scale", "bias", "layout"});
  edit::ImageSettings image;
  image.color = color_of(settings.text("color", "rgb"));
  image.scale = settings.numbers("scale", {1});
  image.bias = settings.numbers("bias", {0});
  image.layout = settings.text("layout", "");
  return edit::set_image(model, name, image, side);
}

ModelSource normalize(const ModelSource& model, const std::string& value) {
  const auto [name, text] = split(value, "NAME=mean=...,std=...");
  Settings settings(text, {"mean", "std", "axis"});
  std::optional<int> axis;
  if (!settings.text("axis", "").empty()) axis = static_cast<int>(settings.numbers("axis", {}).at(0));
  return edit::normalize(model, name, settings.numbers("mean", {0}), settings.numbers("std", {1}), axis);
}

ModelSource set_labels(const ModelSource& model, const std::string& value) {
  Settings settings(value, {"file", "type", "output", "label", "probabilities"});
  edit::ClassifierNames names;
  names.probabilities = settings.text("output", "");
  names.label = settings.text("label", names.label);
  names.dictionary = settings.text("probabilities", names.dictionary);
  return edit::set_labels(model, read_labels(settings.text("file", ""), settings.text("type", "string")), names);
}

ModelSource strip(const ModelSource& model, const std::string& value) {
  Settings settings(value, {"content", "seed"});
  const std::string content = settings.text("content", "");
  if (content == "zeros") return edit::strip_weights(model);
  if (content != "random") throw UsageError(fmt::format("expected zeros or random, got '{}'", content));
  return edit::strip_weights(model, static_cast<uint64_t>(settings.numbers("seed", {1}).at(0)));
}

ModelSource set_sizes(const ModelSource& model, const std::string& value) {
  std::map<std::string, edit::InputSizes> inputs;
  for (const std::string& pair : listed(value)) {
    const auto [name, text] = split(pair, "NAME=SIZES");
    inputs[name] = sizes_of(text);
  }
  return edit::set_sizes(model, inputs);
}

ModelSource append(const ModelSource& model, const std::string& path, const std::string& name) {
  return edit::append(model, name, ModelSource::open(path), name_of_model(path));
}

ModelSource add_function(const ModelSource& model, const std::string& value) {
  const auto [name, text] = split(value, "NAME=MODEL");
  Settings settings(text, {"model", "function"});
  return edit::add_function(model, name, ModelSource::open(settings.text("model", "")), settings.text("function", ""));
}

ModelSource set_loss(const ModelSource& model, const std::string& value) {
  Settings settings(value, {"loss", "input", "name"});
  const std::string loss = settings.text("loss", "");
  if (loss != "cross-entropy" && loss != "mse")
    throw UsageError(fmt::format("expected cross-entropy or mse, got '{}'", loss));
  const auto kind = loss == "mse" ? LossLayer::Kind::mean_squared_error : LossLayer::Kind::categorical_cross_entropy;
  return edit::set_loss(model, kind, settings.text("input", ""), settings.text("name", "loss"));
}

/// "0.01,min=0.001,max=0.1" or "8,allowed=4:8:16".
template <const char* const& name>
ModelSource set_update_parameter(const ModelSource& model, const std::string& value) {
  Settings settings(value, {"value", "min", "max", "allowed"});
  const auto number = [&](const char* key) { return settings.numbers(key, {}); };
  const std::vector<double> given = number("value"), least = number("min"), most = number("max");
  if (given.size() != 1 || least.size() != most.size() || least.size() > 1)
    throw UsageError("expected NUMBER, NUMBER,min=NUMBER,max=NUMBER or NUMBER,allowed=A:B:C");
  edit::UpdateValue out{given[0]};
  if (!least.empty()) out.range = {least[0], most[0]};
  for (const double allowed : number("allowed")) {
    if (std::abs(allowed) > 9e15 || allowed != std::floor(allowed))
      throw UsageError(fmt::format("allowed: expected integers, got {}", allowed));
    out.allowed.push_back(static_cast<int64_t>(allowed));
  }
  return edit::set_update_parameter(model, name, out);
}
constexpr const char* kRate = "learningRate";
constexpr const char* kBatch = "miniBatchSize";
constexpr const char* kMomentum = "momentum";
constexpr const char* kBeta1 = "beta1";
constexpr const char* kBeta2 = "beta2";
constexpr const char* kEps = "eps";
constexpr const char* kEpochs = "epochs";
constexpr const char* kShuffle = "shuffle";
constexpr const char* kSeed = "seed";
constexpr const char* kNeighbors = "numberOfNeighbors";

const EditAction kActions[] = {
    {"--rename", "OLD=NEW", "Rename inputs, outputs or states; input:OLD and output:OLD choose one side", rename},
    {"--rename-operation", "OLD=NEW", "Rename operations of a program or layers of a network",
     [](const ModelSource& m, const std::string& v) { return edit::rename_operations(m, names_of(v)); }},
    {"--rename-value", "OLD=NEW", "Rename values inside a program or a network",
     [](const ModelSource& m, const std::string& v) { return edit::rename_values(m, names_of(v)); }},
    {"--type", "NAME=TYPE", "Make an array float16, float32, float64, int32 or int8", set_type},
    {"--image", "NAME=COLOR[,scale=S][,bias=B][,layout=chw]",
     "Make an image of an array: rgb, bgr, grayscale or grayscale_float16. Inputs are\n"
     "pixel * scale + bias, pixels of outputs number * scale + bias; 1/255 is a number,\n"
     "and 1:2:3 one for each channel",
     set_image},
    {"--normalize", "NAME=mean=M,std=S[,axis=N]", "Compute (x - mean) / std of an input first", normalize},
    {"--shape", "NAME=SIZES,...",
     "Allow these sizes of inputs: 1x3x224x224, ranges 1x3x32..512x32.., or shapes\n"
     "1x8|1x16, the first of which is the default; images have height x width",
     set_sizes},
    {"--labels", "FILE[,output=NAME][,type=int64]",
     "Make a classifier with the labels in the lines of a file, or replace its labels;\n"
     "label=NAME and probabilities=NAME name the new outputs",
     set_labels},
    {"--remove-labels", "", "Return the array of probabilities instead of labels",
     [](const ModelSource& m, const std::string&) { return edit::remove_labels(m); }},
    {"--strip", "zeros|random[,seed=N]", "Replace all weights by zeros or random numbers", strip},
    {"--target", "SYSTEM", "Raise the version of the model and the opset of programs: ios11 to ios26",
     [](const ModelSource& m, const std::string& v) { return edit::set_target(m, v); }},
    {"--outputs", "VALUE,...", "Let the model end at these features, values or operations",
     [](const ModelSource& m, const std::string& v) { return edit::cut(m, {}, listed(v)); }},
    {"--inputs", "VALUE,...", "Let the model begin at these features, values or operations",
     [](const ModelSource& m, const std::string& v) { return edit::cut(m, listed(v), {}); }},
    {"--bisect", "", "Make a pipeline of two halves with about the same size of weights",
     [](const ModelSource& m, const std::string&) { return edit::bisect_into_pipeline(m); }},
    {"--append", "MODEL", "Let another model read what this one returns: a pipeline", nullptr, append},
    {"--inline", "", "Make one program of a pipeline of programs",
     [](const ModelSource& m, const std::string&) { return edit::inline_pipeline(m); }},
    {"--stage", "NAME", "Keep only this model of a pipeline, by name or by number from 0 on",
     [](const ModelSource& m, const std::string& v) { return edit::extract_stage(m, v); }},
    {"--function", "NAME", "Keep only this function of a program",
     [](const ModelSource& m, const std::string& v) { return edit::extract_function(m, v); }},
    {"--add-function", "NAME=MODEL[,function=FROM]",
     "Add the function of another program; equal weights are stored once", add_function},
    {"--default-function", "NAME", "Choose the function that runs when none is asked for",
     [](const ModelSource& m, const std::string& v) { return edit::set_default_function(m, v); }},
    {"--updatable", "LAYER,...", "Let updates change the weights of these layers of a network",
     [](const ModelSource& m, const std::string& v) { return edit::make_updatable(m, listed(v)); }},
    {"--loss", "cross-entropy|mse[,input=VALUE][,name=NAME]",
     "Set what updates make small, and the training inputs; without input=VALUE the loss\n"
     "reads the only softmax or the only output",
     set_loss},
    {"--optimizer", "sgd|adam", "Set the optimizer, with the defaults of coremltools",
     [](const ModelSource& m, const std::string& v) { return edit::set_optimizer(m, v); }},
    {"--learning-rate", "RATE[,min=A,max=B]", "Set the learning rate and its allowed range, by default 0 to 1",
     set_update_parameter<kRate>},
    {"--mini-batch", "SIZE[,allowed=A:B:C]", "Set the size of mini-batches, and which others are allowed",
     set_update_parameter<kBatch>},
    {"--momentum", "NUMBER[,min=A,max=B]", "Set the momentum of sgd", set_update_parameter<kMomentum>},
    {"--beta1", "NUMBER[,min=A,max=B]", "Set beta1 of adam", set_update_parameter<kBeta1>},
    {"--beta2", "NUMBER[,min=A,max=B]", "Set beta2 of adam", set_update_parameter<kBeta2>},
    {"--eps", "NUMBER[,min=A,max=B]", "Set epsilon of adam", set_update_parameter<kEps>},
    {"--epochs", "COUNT[,allowed=A:B:C]", "Set how often an update sees all examples", set_update_parameter<kEpochs>},
    {"--shuffle", "0|1", "Set whether each epoch has its own order of the examples", set_update_parameter<kShuffle>},
    {"--seed", "NUMBER", "Set the seed of these orders", set_update_parameter<kSeed>},
    {"--neighbors", "COUNT[,min=A,max=B]", "Set the number of neighbors that a classifier looks for",
     set_update_parameter<kNeighbors>},
    {"--author", "TEXT", "Set the author; an empty text removes it", set_text<kAuthor>},
    {"--license", "TEXT", "Set the license", set_text<kLicense>},
    {"--model-version", "TEXT", "Set the version of the model", set_text<kVersion>},
    {"--description", "TEXT", "Set the description of the model", set_text<kDescription>},
    {"--set", "KEY=TEXT", "Set an entry of the user-defined metadata",
     [](const ModelSource& m, const std::string& v) {
       const auto [key, text] = split(v, "KEY=TEXT");
       return edit::set_user_defined(m, key, text);
     }},
    {"--describe", "NAME=TEXT", "Set the description of a feature",
     [](const ModelSource& m, const std::string& v) {
       const auto [name, text] = split(v, "NAME=TEXT");
       return edit::describe_feature(m, name, text);
     }},
};

}  // namespace

std::string name_of_model(const std::string& path) {
  const std::filesystem::path file(path);
  return (file.has_filename() ? file : file.parent_path()).stem().string();
}

const EditAction* edit_action(std::string_view name) {
  const auto* it = std::find_if(std::begin(kActions), std::end(kActions), [&](auto& a) { return a.name == name; });
  return it == std::end(kActions) ? nullptr : it;
}

void add_edit_options(Arguments app, EditOptions& options) {
  for (const EditAction& action : kActions) {
    const std::string name(action.name), help(action.help);
    if (action.value.empty())
      app.add_flag(name, options.flags.emplace_back(), help);
    else
      app.add_option(name, options.values.emplace_back(), help)
          .allow_extra_args(false)
          .option_text(std::string(action.value));
  }
}

}  // namespace moka::cli
