// SPDX-License-Identifier: Apache-2.0
#include "api/build.h"
#include "api/internal.h"
#include "api/program_impl.h"
#include "boundary/path.h"
#include "editing/join.h"
#include "format/mlmodelc/write.h"

namespace moka {

using api::unwrap;

ModelAssetView api::asset_of(const format::ModelSource& source) {
  struct Held {
    Bytes specification;
    std::map<std::string, Bytes> files;
  };
  auto held = std::make_shared<Held>();
  held->specification = unwrap(source.specification.serialize()).joined();
  ModelAssetView view;
  for (auto& [name, content] : source.weights) view.blobs[name] = (held->files[name] = content.joined()).span;
  view.specification = held->specification.span;
  view.owner = held;
  return view;
}

format::ModelFile api::file_of(const ModelSource& source) {
  const format::ModelSource& inner = source.impl().source();
  return unwrap(format::open_source(inner.specification, inner.weights, {.any_kind = true}));
}

ModelSource::Impl::Impl(std::shared_ptr<const ProgramBuilder::Impl> program) : program_(std::move(program)) {
  program_->describing_model();
}

ModelSource::Impl::Impl(format::ModelFile file, std::function<format::ModelSource()> write)
    : file_(std::move(file)), write_(std::move(write)) {}

ModelSource::Impl::~Impl() = default;

format::ModelSource& ModelSource::Impl::source() {
  const std::lock_guard lock(mutex_);
  if (!source_) {
    source_ = program_ ? program_->write() : write_();
    program_.reset();
    file_.reset();
    write_ = nullptr;
  }
  return *source_;
}

std::shared_ptr<const ProgramBuilder::Impl> ModelSource::Impl::program() {
  const std::lock_guard lock(mutex_);
  return program_;
}

std::optional<format::ModelFile> ModelSource::Impl::file() {
  const std::lock_guard lock(mutex_);
  return file_;
}

ModelSource::ModelSource(Message specification) {
  if (specification.type() != "Model")
    throw Exception(ErrorKind::invalid_argument,
                    cat("a model: expected the message Model, got ", specification.type()));
  impl_ = std::make_shared<Impl>(format::ModelSource{specification.impl().message});
}

ModelSource ModelSource::open(const std::filesystem::path& path) {
  return ModelSource(std::make_shared<Impl>(unwrap(format::ModelSource::read(boundary::native(path)))));
}

Message ModelSource::specification() const {
  return Message(std::make_shared<Message::Impl>(Message::Impl{impl_->source().specification}));
}

std::vector<std::string> ModelSource::weight_files() const {
  std::vector<std::string> out;
  for (const auto& [name, content] : impl_->source().weights) out.push_back(name);
  return out;
}

MultiArray ModelSource::weight_file(const std::string& name) const {
  const auto& files = impl_->source().weights;
  const auto it = files.find(name);
  if (it == files.end()) throw Exception(ErrorKind::not_found, cat("the model has no weight file '", name, "'"));
  return api::array_of(it->second.joined(), DataType::uint8);
}

void ModelSource::set_weight_file(const std::string& name, const MultiArray& content) {
  impl_->source().weights[unwrap(format::weight_file_name(name))] = format::Rope(api::bytes_of(content));
}

void ModelSource::add_stage(const ModelSource& model, const std::string& name) {
  unwrap(editing::add_stage(impl_->source(), model.impl_->source(), name));
}

void ModelSource::save(const std::filesystem::path& path, Overwrite overwrite) const {
  unwrap(impl_->source().write(boundary::native(path), overwrite == Overwrite::any));
}

Model ModelSource::load(const ModelConfiguration& configuration) const {
  if (auto program = impl_->program()) return Model::Impl::of_program(std::move(program), configuration);
  // A memory budget also counts the decoding.
  if (auto file = impl_->file(); file && configuration.memory_budget == 0)
    return Model::Impl::of_file(*file, configuration);
  return Model::load(api::asset_of(impl_->source()), configuration);
}

}  // namespace moka
