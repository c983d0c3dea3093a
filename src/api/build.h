// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "format/message/message.h"
#include "format/model_file.h"
#include "format/source.h"
#include "moka/build.h"
#include "moka/program.h"

namespace moka {

struct __attribute__((visibility("hidden"))) Message::Impl {
  explicit Impl(format::Message m) : message(std::move(m)) {}
  format::Message message;
};

struct __attribute__((visibility("hidden"))) ModelSource::Impl {
  explicit Impl(format::ModelSource s) : source_(std::move(s)) {}
  /// The source of a program, which is written when its message is needed first. Throws what ProgramBuilder::source
  /// does.
  explicit Impl(std::shared_ptr<const ProgramBuilder::Impl> program);
  /// The source of a model that is decoded. `write` makes the message when it is needed.
  Impl(format::ModelFile file, std::function<format::ModelSource()> write);
  ~Impl();
  format::ModelSource& source();
  /// nullptr: the source was read or is written, so that its message may have changed.
  std::shared_ptr<const ProgramBuilder::Impl> program();
  /// nullopt: the same, or the source was not made of a decoded model.
  std::optional<format::ModelFile> file();

 private:
  std::mutex mutex_;
  std::optional<format::ModelSource> source_;
  std::shared_ptr<const ProgramBuilder::Impl> program_;
  std::optional<format::ModelFile> file_;
  std::function<format::ModelSource()> write_;  ///< with `file_`
};

namespace api {

/// The model as bytes, which the view owns.
ModelAssetView asset_of(const format::ModelSource& source);
/// Opens the model of a source. Also opens models that Moka cannot import.
format::ModelFile file_of(const ModelSource& source);

/// The elements of an array in row-major order, without a copy if they lie so.
Bytes bytes_of(const MultiArray& array);
/// [n] elements of the type.
MultiArray array_of(const Bytes& bytes, DataType type);

}  // namespace api

}  // namespace moka
