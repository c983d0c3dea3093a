// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/pattern.h"
#include "format/model_file.h"
#include "ir/text_reader.h"
#include "trace/read.h"
#include "trace/trace.h"
#include "training/trainer.h"

namespace moka::api {
std::vector<const kernel::Device*> all_devices();
}

/// Trains a model for bench/training/run.py: step TASK.json, where TASK has
///   "model"                     an .mlpackage or .mil file
///   "parameters"                patterns of the weights that change
///   "loss", "input", "target"   "cross_entropy" or "mean_squared_error", what it reads, and its input
///   "optimizer", "momentum"     "sgd" or "adam"; whether sgd keeps velocities
///   "batch_statistics"          the momentum of the statistics of batch norms, or null: they stay
///   "threads"
///   "arrays"                    {name: {"file": raw bytes, "type": "fp32" or "int32", "shape"}}
///   "batches"                   how many arrays each file has, one behind the other; steps take them in turn
/// A line of standard input is a request, and each is answered with one line of JSON. "numbers" are those of the
/// optimizer, by name:
///   {"do": "load"}                        {"plan": seconds, "parameters": how many numbers change}
///   {"do": "steps", "count", "numbers"}   {"losses": [...], "times": [seconds, ...]}
///   {"do": "save", "folder"}              {"names": [...]}: writes the bytes of each parameter to a file of that name
///   {"do": "peak"}                        {"peak": bytes beyond what the process had before the model}
///   {"do": "kernels", "file", "numbers"}  {"seconds": of one step, "operations": [{"name", "type", "kernel", "shape",
///                                         "seconds"}, ...]}; the file is for a trace
/// An answer with "reason" says what went wrong.
namespace moka::training {
namespace {

using nlohmann::json;

Result<import::ImportedModel> import_text(const std::string& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  import::ImportedModel m;
  m.program = MOKA_TRY(ir::read_text(text, ops::table()));
  const ir::Function& f = *m.program.functions[0];
  m.description.typed = true;
  m.description.default_function = f.name;
  import::FunctionDescription d;
  d.name = f.name;
  for (const auto& v : f.body().inputs()) d.inputs.emplace_back().name = v->name;
  for (const ir::Value* v : f.body().outputs()) d.outputs.emplace_back().name = v->name;
  m.description.functions.push_back(std::move(d));
  return m;
}

Result<import::ImportedModel> import(const std::string& path) {
  if (path.ends_with(".mil")) return import_text(path);
  const format::ModelFile file = MOKA_TRY(format::open_model(path));
  return import::import_model(file, {});
}

/// The array of mini-batch `i`.
Result<ir::Tensor> read_array(const json& j, int i) {
  ir::Shape shape;
  for (int64_t d : j["shape"]) shape.push_back(d);
  ir::Tensor t = MOKA_TRY(ir::Tensor::zeros(j["type"] == "int32" ? ir::DType::int32 : ir::DType::fp32, shape));
  const std::string path = j["file"];
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(t.bytes()) * i);
  file.read(static_cast<char*>(t.mutable_data()), static_cast<std::streamsize>(t.bytes()));
  if (!file) return fail(ErrorCode::io, path, ": expected ", t.bytes(), " bytes");
  return t;
}

/// A number of /proc/self/status, in bytes.
int64_t memory(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return std::stoll(line.substr(name.size())) * 1024;
  return 0;
}

double seconds_since(int64_t start) { return static_cast<double>(trace::now() - start) / 1e9; }

class Worker {
 public:
  explicit Worker(json task) : task_(std::move(task)) {}

  Result<json> answer(const json& request) {
    const std::string what = request["do"];
    if (what == "load") return load();
    if (trainer_ == nullptr) return fail(ErrorCode::invalid_argument, "the model is not loaded");
    if (what == "steps") return steps(request["count"], request["numbers"].get<Numbers>());
    if (what == "save") return save(request["folder"]);
    if (what == "peak") return json{{"peak", memory("VmHWM:") - before_}};
    if (what == "kernels") return kernels(request["file"], request["numbers"].get<Numbers>());
    return fail(ErrorCode::invalid_argument, "unknown request '", what, "'");
  }

 private:
  TrainerOptions options() const {
    TrainerOptions o;
    for (const std::string p : task_["parameters"]) o.program.parameters.push_back(p);
    o.program.optimizer = task_["optimizer"] == "adam" ? Optimizer::adam : Optimizer::sgd;
    o.program.momentum = task_["momentum"];
    if (!task_["batch_statistics"].is_null()) o.program.batch_statistics = task_["batch_statistics"].get<double>();
    const bool is_class = task_["loss"] == "cross_entropy";
    o.program.losses.push_back(
        {is_class ? Loss::Kind::cross_entropy : Loss::Kind::mean_squared_error, task_["input"], task_["target"]});
    for (const kernel::Device* d : api::all_devices())
      if (d->name() == "cpu" || d->name() == "reference") o.compile.plan.devices.push_back(d);
    o.compile.plan.threads = task_["threads"];
    return o;
  }

  bool matches(const std::string& parameter) const {
    return std::any_of(task_["parameters"].begin(), task_["parameters"].end(),
                       [&](const json& pattern) { return matches_pattern(pattern.get<std::string>(), parameter); });
  }

  Result<json> load() {
    for (int i = 0; i < task_["batches"].get<int>(); i++) {
      auto& arrays = batches_.emplace_back();
      for (const auto& [name, array] : task_["arrays"].items()) arrays.emplace(name, MOKA_TRY(read_array(array, i)));
    }
    before_ = memory("VmRSS:");
    std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM begins anew
    const int64_t start = trace::now();
    const std::string path = task_["model"];
    const import::ImportedModel model = MOKA_TRY(import(path));
    std::vector<ir::Type> inputs;
    for (const auto& f : model.description.function(model.description.default_function)->inputs) {
      const auto it = batches_[0].find(f.name);
      if (it == batches_[0].end()) return fail(ErrorCode::not_found, "input '", f.name, "' is missing");
      inputs.push_back(ir::Type::tensor(it->second.dtype(), it->second.shape()));
    }
    trainer_ = MOKA_TRY(Trainer::make([path] { return import(path); }, inputs, options()));
    int64_t count = 0;
    for (const auto& [name, value] : trainer_->parameters())
      if (matches(name)) count += value.count();
    return json{{"plan", seconds_since(start)}, {"parameters", count}};
  }

  Result<double> step(const Numbers& numbers) {
    return trainer_->step(batches_[static_cast<size_t>(trainer_->steps()) % batches_.size()], numbers);
  }

  Result<json> steps(int count, const Numbers& numbers) {
    std::vector<double> losses, times;
    for (int i = 0; i < count; i++) {
      const int64_t start = trace::now();
      losses.push_back(MOKA_TRY(step(numbers)));
      times.push_back(seconds_since(start));
    }
    return json{{"losses", losses}, {"times", times}};
  }

  Result<json> save(const std::string& folder) const {
    json names = json::array();
    for (const auto& [name, value] : trainer_->parameters()) {
      std::ofstream file(cat(folder, "/", name), std::ios::binary);
      file.write(static_cast<const char*>(value.data()), static_cast<std::streamsize>(value.bytes()));
      if (!file) return fail(ErrorCode::io, folder, ": '", name, "' cannot be written");
      names.push_back(name);
    }
    return json{{"names", names}};
  }

  /// Records three steps and takes the shortest time of each operation, so that one interruption does not count.
  Result<json> kernels(const std::string& path, const Numbers& numbers) {
    constexpr int kSteps = 3;
    MOKA_TRY(trace::start(path, true));
    const int64_t start = trace::now();
    for (int i = 0; i < kSteps; i++) MOKA_TRY(step(numbers));
    const double seconds = seconds_since(start) / kSteps;
    MOKA_TRY(trace::stop());
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    unlink(path.c_str());
    const trace::Contents contents = MOKA_TRY(trace::read(std::as_bytes(std::span(bytes))));
    std::vector<const trace::Slice*> slices;
    for (const trace::Slice& s : contents.slices)
      if (s.depth > 0 && contents.tracks.at(s.track).name == "Compute") slices.push_back(&s);
    if (slices.size() % kSteps != 0)
      return fail(ErrorCode::internal, "expected ", kSteps, " equal steps, got ", slices.size(), " operations");
    const size_t each = slices.size() / kSteps;
    json out = json::array();
    for (size_t i = 0; i < each; i++) {
      const trace::Slice& s = *slices[i];
      int64_t taken = s.to - s.from;
      for (size_t k = i; k < slices.size(); k += each) taken = std::min(taken, slices[k]->to - slices[k]->from);
      const auto text = [&](const char* name) { return s.texts.contains(name) ? s.texts.at(name) : std::string(); };
      out.push_back({{"name", s.name},
                     {"type", s.kind},
                     {"kernel", text("kernel")},
                     {"shape", text("shape")},
                     {"seconds", static_cast<double>(taken) / 1e9}});
    }
    return json{{"seconds", seconds}, {"operations", out}};
  }

  const json task_;
  std::vector<std::map<std::string, ir::Tensor>> batches_;
  std::unique_ptr<Trainer> trainer_;
  int64_t before_ = 0;
};

}  // namespace
}  // namespace moka::training

int main(int argc, char** argv) {
  using nlohmann::json;
  if (argc != 2) {
    std::cerr << "usage: moka_bench_training TASK.json\n";
    return 2;
  }
  moka::training::Worker worker(json::parse(std::ifstream(argv[1])));
  for (std::string line; std::getline(std::cin, line);) {
    auto answer = worker.answer(json::parse(line));
    std::cout << (answer.ok() ? *answer : json{{"reason", answer.error().to_string()}}).dump() << std::endl;
  }
}
