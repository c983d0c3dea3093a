// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "check/python_script.h"
#include "check/reference.h"
#include "input.h"
#include "io/file.h"
#include "json_text.h"
#include "temporary_folder.h"
#include "text.h"

namespace moka::cli {

extern const unsigned char run_reference_bytes[];
extern const unsigned long run_reference_size;

namespace {

namespace fs = std::filesystem;

void run_script(const char* what, const std::string& model, const fs::path& folder) {
  run_python({reinterpret_cast<const char*>(run_reference_bytes), run_reference_size}, {what, model, folder.string()},
             model);
}

class PythonReference : public Reference {
 public:
  PythonReference(const std::string& path, const FunctionDescription& function) : path_(path) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) throw io::IoError(path + ": no such file");
    const TemporaryFolder folder("verify");
    run_script("describe", path, folder.path());
    const io::Bytes bytes = io::read_file(folder.path() / "description.json");
    const auto json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
    engine_ = json.at("engine").get<std::string>();
    for (const auto& [key, to] : {std::pair{"inputs", &inputs_}, std::pair{"outputs", &outputs_}})
      for (size_t n = 0; n < json.at(key).size(); ++n) {
        const auto& one = json.at(key)[n];
        FeatureDescription feature;
        feature.name = one.at("name").get<std::string>();
        feature.optional = one.value("optional", false);
        if (feature.optional && find_feature(function.inputs, feature.name) == nullptr) continue;
        if (to == &inputs_) numbers_.push_back(n);
        feature.array.type = type_named(one.at("type").get<std::string>(), path + ": '" + feature.name + "'");
        for (const auto& d : one.at("shape")) {
          const auto size = d.get<int64_t>();
          feature.array.shape.push_back(size < 0 ? 1 : size);
          feature.array.ranges.push_back(size < 0 ? SizeRange{0, -1} : SizeRange{size, size});
        }
        to->push_back(std::move(feature));
      }
  }
  std::string name() const override { return fmt::format("{} ({})", path_, engine_); }
  const std::vector<FeatureDescription>& inputs() const override { return inputs_; }
  const std::vector<FeatureDescription>& outputs() const override { return outputs_; }
  std::vector<Features> predict(const std::vector<Features>& items,
                                const std::function<void(size_t)>& advance) override {
    try {
      return answers_of(items, advance);
    } catch (const io::IoError& e) {
      throw Exception(ErrorKind::io, e.what());
    }
  }

 private:
  std::vector<Features> answers_of(const std::vector<Features>& items, const std::function<void(size_t)>& advance) {
    std::vector<Features> out;
    const TemporaryFolder folder("verify");
    for (size_t i = 0; i < items.size(); ++i)
      for (size_t n = 0; n < inputs_.size(); ++n) {
        if (inputs_[n].optional && items[i].find(inputs_[n].name) == nullptr) continue;
        io::write_file(folder.path() / fmt::format("{}.{}.in.npy", i, numbers_[n]),
                       encode_npy(items[i].array(inputs_[n].name)));
      }
    run_script("run", path_, folder.path());
    for (size_t i = 0; i < items.size(); ++i) {
      Features answer;
      for (size_t n = 0; n < outputs_.size(); ++n)
        answer[outputs_[n].name] = read_numbers(folder.path() / fmt::format("{}.{}.out.npy", i, n));
      out.push_back(std::move(answer));
      advance(out.size());
    }
    return out;
  }

  std::string path_, engine_;
  std::vector<FeatureDescription> inputs_, outputs_;
  std::vector<size_t> numbers_;  ///< of the inputs, as the script counts them
};

}  // namespace

DataType type_named(const std::string& name, const std::string& where) {
  if (name == "bool") return DataType::boolean;
  for (int i = 0; i <= static_cast<int>(DataType::boolean); ++i)
    if (to_string(static_cast<DataType>(i)) == name) return static_cast<DataType>(i);
  throw UsageError(fmt::format("{}: the type {} cannot be compared", where, name));
}

std::unique_ptr<Reference> python_reference(const std::string& path, const FunctionDescription& function) {
  return std::make_unique<PythonReference>(path, function);
}

}  // namespace moka::cli
