// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base64.h"
#include "format/message/schema.h"
#include "format/model_file.h"
#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "import/neuralnetwork/network.h"
#include "import/registered_models.h"
#include "ir/op_def.h"
#include "opdocs/opdocs.h"

/// Which layers of neural networks and which types of models run, and what their tests compare with.
namespace moka::opdocs {
namespace {

using Json = nlohmann::json;

/// What the recorded cases cover: layers and types of models, by the number of their member in the specification.
struct Seen {
  std::map<int, int> layer_cases, type_cases;
  std::map<int, std::set<std::string>> operations;  ///< the operations that layers of a kind become
};

template <class Network, class F>
void each_layer(const Network& network, const F& fn) {
  for (const proto::NeuralNetworkLayer& layer : network.layers()) {
    fn(layer);
    if (layer.has_branch()) {
      each_layer(layer.branch().ifbranch(), fn);
      each_layer(layer.branch().elsebranch(), fn);
    } else if (layer.has_loop()) {
      each_layer(layer.loop().conditionnetwork(), fn);
      each_layer(layer.loop().bodynetwork(), fn);
    }
  }
}

template <class F>
void each_layer_of(const proto::Model& model, const F& fn) {
  if (model.has_neuralnetwork()) each_layer(model.neuralnetwork(), fn);
  if (model.has_neuralnetworkclassifier()) each_layer(model.neuralnetworkclassifier(), fn);
  if (model.has_neuralnetworkregressor()) each_layer(model.neuralnetworkregressor(), fn);
}

void add_types(const proto::Model& model, std::set<int>& types) {
  types.insert(model.Type_case());
  if (const auto* pipeline = format::pipeline_of(model))
    for (const proto::Model& stage : pipeline->models()) add_types(stage, types);
}

void each_op(const ir::Block& block, const std::function<void(const ir::Op&)>& fn) {
  for (const auto& op : block.ops()) {
    fn(*op);
    for (size_t i = 0; i < op->block_count(); ++i) each_op(*op->block(i), fn);
  }
}

/// Counts the predictions of one model.
void add_model(const std::string& bytes, int cases, Seen& seen) {
  auto file = format::open_model_bytes(Bytes::from(bytes), {});
  if (!file.ok()) throw std::runtime_error(file.error().to_string());
  std::set<int> types;
  add_types(file->spec(), types);
  for (int type : types) seen.type_cases[type] += cases;
  std::map<std::string, int> layers;
  each_layer_of(file->spec(), [&](const auto& layer) { layers[layer.name()] = layer.layer_case(); });
  std::set<int> kinds;
  for (const auto& [name, kind] : layers) kinds.insert(kind);
  for (int kind : kinds) seen.layer_cases[kind] += cases;
  if (layers.empty()) return;
  auto model = import::import_model(*file, {});
  if (!model.ok()) throw std::runtime_error(model.error().to_string());
  for (const auto& f : model->program.functions)
    each_op(f->body(), [&](const ir::Op& op) {
      const auto it = layers.find(op.name);
      if (it != layers.end() && !op.has_trait(ir::Trait::constant)) seen.operations[it->second].insert(op.type_name());
    });
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The recorded models and predictions below tests/golden.
Seen look(const std::filesystem::path& golden) {
  Seen seen;
  std::set<std::filesystem::path> files;
  for (const char* folder : {"nn_layers", "classic"})
    for (const auto& e : std::filesystem::directory_iterator(golden / folder))
      if (e.path().extension() == ".json") files.insert(e.path());
  for (const auto& path : files) {
    const Json json = Json::parse(contents(path));
    if (path.parent_path().filename() == "nn_layers")
      for (const Json& c : json.at("cases")) add_model(test::base64(c.at("model").get<std::string>()), 1, seen);
    else if (!json.contains("model"))
      add_model(contents(std::filesystem::path(path).replace_extension(".mlmodel")),
                static_cast<int>(json.at("cases").size()), seen);
  }
  for (const Json& model : Json::parse(contents(golden / "pipelines/truth.json")))
    add_model(contents(golden / "pipelines" / (model.at("model").get<std::string>() + ".mlmodel")),
              static_cast<int>(model.at("steps").size()), seen);
  return seen;
}

/// The members of a oneof, in the order of their numbers.
std::vector<const format::FieldDef*> members(std::string_view message, std::string_view oneof) {
  const format::MessageDef* m = format::find_message(message);
  if (m == nullptr) throw std::runtime_error("no message of that name");
  std::vector<const format::FieldDef*> out;
  for (const auto& [number, field] : m->fields)
    if (field.oneof >= 0 && m->oneofs[static_cast<size_t>(field.oneof)] == oneof) out.push_back(&field);
  return out;
}

bool needs_no_kernel(const std::string& operation) {
  const ir::OpVersion& v = ops::table().find(operation)->versions.back();
  return has(v.traits, ir::Trait::control) || has(v.traits, ir::Trait::alias) ||
         has(v.traits, ir::Trait::constexpr_weight);
}

/// Whether a device other than the reference has computed the operation.
bool has_kernel(const Support& support, const std::string& operation) {
  const auto uses = support.uses.find(operation);
  if (uses == support.uses.end()) return false;
  const auto cpu = uses->second.find("cpu");
  return cpu != uses->second.end() && cpu->second.taken > 0;
}

std::string cases_text(int n) { return n == 0 ? "" : std::to_string(n); }

std::string layer_row(const format::FieldDef& f, const Seen& seen, const Support& support) {
  const int number = static_cast<int>(f.number);
  const auto cases = seen.layer_cases.find(number);
  std::string operations, others;
  if (const auto it = seen.operations.find(number); it != seen.operations.end())
    for (const std::string& op : it->second) {
      operations += (operations.empty() ? "[" : ", [") + op + "](operations/" + op + ".md)";
      if (!needs_no_kernel(op) && !has_kernel(support, op)) others += (others.empty() ? "" : ", ") + op;
    }
  const bool is_imported = import::nn::find_layer(number) != nullptr;
  const std::string imported = !is_imported ? "no" : f.name == "custom" ? "when registered" : "yes";
  const std::string kernels = operations.empty() ? "" : others.empty() ? "all" : "all but " + others;
  return "| `" + f.name + "` | " + imported + " | " + cases_text(cases == seen.layer_cases.end() ? 0 : cases->second) +
         " | " + operations + " | " + kernels + " |\n";
}

std::string type_row(const format::FieldDef& f, const Seen& seen, const Support& support) {
  const int number = static_cast<int>(f.number);
  const auto it = seen.type_cases.find(number);
  int cases = it == seen.type_cases.end() ? 0 : it->second;
  if (f.name == "mlProgram")
    for (const auto& [op, n] : support.cases) cases += n;
  const std::string needs(import::needs_of(number));
  return "| `" + f.name + "` | " + (import::is_imported(number) ? "yes" : "no") + " | " + needs + " | " +
         cases_text(cases) + " |\n";
}

}  // namespace

std::string models_markdown(const Support& support, const std::string& golden) {
  const Seen seen = look(golden);
  const auto types = members("Model", "Type"), layers = members("NeuralNetworkLayer", "layer");
  std::string out =
      "# Model types and layers\n\n<!-- Made by `make docs` from src/import and tests/golden; do not edit. -->\n\n"
      "What the specification can hold, and what Moka does with it. Cases are predictions in tests/golden and "
      "tests/conformance\nwhose expected values come from NumPy, scipy, scikit-learn, xgboost, libsvm or coremltools. "
      "They do not count the tests\nthat register classes and models (tests/api, tests/python), published models, or "
      "coremltools' own tests\n([conformance.md](conformance.md)). Random layers are\ntested by their distributions "
      "(tests/ops/random_test.cpp).\n\n## " +
      std::to_string(types.size()) + " types of models\n\n| Type | Imported | It needs | Cases |\n|---|---|---|---|\n";
  for (const auto* f : types) out += type_row(*f, seen, support);
  out +=
      "\n## " + std::to_string(layers.size()) +
      " layers of neural networks\n\nA layer becomes operations. The last column says which of them have kernels for "
      "the CPU; the others run in plain\nloops.\n\n| Layer | Imported | Cases | Operations | CPU kernels |\n"
      "|---|---|---|---|---|\n";
  for (const auto* f : layers) out += layer_row(*f, seen, support);
  return out;
}

}  // namespace moka::opdocs
