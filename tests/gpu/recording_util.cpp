// SPDX-License-Identifier: Apache-2.0
#include "gpu/recording_util.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>

#include "devices/gpu/region.h"
#include "devices/reference/device.h"
#include "ir/text_reader.h"
#include "runtime/model.h"

namespace moka::gpu_test {

using namespace devices::gpu;
using kernel::Buffer;

namespace {

class HostBuffer final : public Buffer {
 public:
  HostBuffer(size_t bytes, bool seen) : Buffer(bytes), is_seen(seen), data(new std::byte[bytes + 64]()) {}
  const bool is_seen;
  const std::unique_ptr<std::byte[]> data;
};

class HostMemory final : public kernel::Memory {
 public:
  explicit HostMemory(bool unified) : unified_(unified) {}
  size_t alignment() const override { return 64; }
  Result<std::shared_ptr<Buffer>> allocate(size_t bytes) const override {
    return std::shared_ptr<Buffer>(std::make_shared<HostBuffer>(bytes, unified_));
  }
  Status write(Buffer& to, size_t offset, const void* from, size_t bytes) const override {
    std::memcpy(static_cast<HostBuffer&>(to).data.get() + offset, from, bytes);
    return {};
  }
  std::byte* host_address(const Buffer& buffer) const override {
    const auto& b = static_cast<const HostBuffer&>(buffer);
    return b.is_seen ? b.data.get() : nullptr;
  }
  Status read(const Buffer& from, size_t offset, void* to, size_t bytes) const override {
    std::memcpy(to, static_cast<const HostBuffer&>(from).data.get() + offset, bytes);
    return {};
  }

 private:
  bool unified_;
};

/// The text of a region.
class Writer {
 public:
  std::string text_of(const kernel::Region& region, const RecordedRegion& recorded) {
    for (const kernel::BufferView& v : region.uploads) text_ += "upload " + of(Use::read(v)) + "\n";
    for (const Command& c : recorded.commands) add(c);
    for (const kernel::BufferView& v : region.downloads) text_ += "download " + of(Use::read(v)) + "\n";
    return text_;
  }

 private:
  std::string of(const Use& u) {
    const auto [it, is_new] = letters_.try_emplace(u.buffer, static_cast<char>('a' + letters_.size()));
    return cat(std::string(1, it->second), "[", u.offset, ":", u.offset + u.bytes, "]", u.written ? "*" : "",
               u.is_unused ? "_" : "");
  }
  static std::string of(uint32_t word) {
    const auto number = std::bit_cast<float>(word);
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    if (!std::isnormal(number)) return std::to_string(word);
    char text[32];
    std::snprintf(text, sizeof text, "%.6gf", static_cast<double>(number));
    return text;
  }
  void add(const Command& c) {
    std::string line = c.waits ? "wait " : "";
    line += c.run.code == nullptr ? "copy" : std::string(c.run.code->name);
    if (!c.run.constants.empty()) {
      std::string all;
      for (const uint32_t v : c.run.constants) all += (all.empty() ? "" : " ") + of(v);
      line += "<" + all + ">";
    }
    std::string buffers, words;
    for (const Use& u : c.uses) buffers += (buffers.empty() ? "" : " ") + of(u);
    line += "(" + buffers + ")";
    for (size_t at = 0; at + 4 <= c.params.size(); at += 4) {
      uint32_t word;
      std::memcpy(&word, c.params.data() + at, 4);
      words += (words.empty() ? "" : " ") + of(word);
    }
    if (c.run.code != nullptr) line += cat(" {", words, "} ", c.groups.x, "x", c.groups.y, "x", c.groups.z);
    text_ += line + "\n";
  }

  std::map<const Buffer*, char> letters_;
  std::string text_;
};

class IdleSubmission final : public kernel::Submission {
 public:
  explicit IdleSubmission(RecordedRegion region) : region_(std::move(region)) {}
  std::byte* upload(size_t i) override { return region_.uploads[i]; }
  const std::byte* download(size_t i) const override { return region_.downloads[i]; }
  Status submit() override { return {}; }
  Status wait() override { return {}; }

 private:
  RecordedRegion region_;
};

class RecordingQueue final : public kernel::Queue {
 public:
  explicit RecordingQueue(const RecordingDevice& device) : device_(device) {}
  Result<std::unique_ptr<kernel::Submission>> compile(const kernel::Region& region) override {
    auto recorded = MOKA_TRY(record_region(device_, region));
    device_.add(Writer().text_of(region, recorded));
    return std::unique_ptr<kernel::Submission>(std::make_unique<IdleSubmission>(std::move(recorded)));
  }

 private:
  const RecordingDevice& device_;
};

using Codes = std::map<std::string, Code, std::less<>>;

/// All codes that the folder dispatches, by name.
const Codes& codes() {
  static const auto& all = *new Codes([] {
    struct Family {
      std::string stem;
      int bindings;
      std::string variants;
    };
    const Family families[] = {
#define CODE(stem, bindings, variants) {#stem, bindings, variants},
#include "devices/gpu/codes.inc"
#undef CODE
    };
    Codes made;
    for (const Family& f : families)
      for (size_t at = 0; at < f.variants.size();) {
        const size_t end = std::min(f.variants.find(' ', at), f.variants.size());
        const auto [named, is_new] = made.try_emplace(cat(f.stem, "_", f.variants.substr(at, end - at)));
        named->second = {named->first, f.bindings};
        at = end + 1;
      }
    return made;
  }());
  return all;
}

}  // namespace

RecordingDevice::RecordingDevice(Features features, bool unified)
    : GpuDevice("recording"), features_(std::move(features)), memory_(std::make_unique<HostMemory>(unified)) {}

RecordingDevice::~RecordingDevice() = default;

const Code* RecordingDevice::find_code(std::string_view name) const {
  const auto it = codes().find(name);
  return it == codes().end() ? nullptr : &it->second;
}

std::span<const std::string_view> RecordingDevice::shader_kinds() const {
  static constexpr std::string_view kinds[] = {"name"};
  return kinds;
}

Result<const Code*> RecordingDevice::compile(const ir::RegisteredShader::Code& code, int bindings) const {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::deque<std::pair<std::string, Code>>;
  const std::lock_guard lock(mutex);
  auto& [name, made] = all.emplace_back(code.bytes, Code{});
  made = {name, bindings, false};
  return &made;
}

Result<std::shared_ptr<Buffer>> RecordingDevice::allocate_staging(size_t bytes) const {
  return std::shared_ptr<Buffer>(std::make_shared<HostBuffer>(bytes, true));
}

Result<std::unique_ptr<kernel::Queue>> RecordingDevice::open_queue() const {
  return std::unique_ptr<kernel::Queue>(std::make_unique<RecordingQueue>(*this));
}

void RecordingDevice::add(const std::string& region) const {
  const std::lock_guard lock(mutex_);
  text_ += text_.empty() ? region : "\n" + region;
}

std::string RecordingDevice::take_text() const {
  const std::lock_guard lock(mutex_);
  return std::exchange(text_, {});
}

Features card() {
  Features f;
  f.name = "a card of a test";
  f.half_storage = f.half = f.byte_storage = f.is_large = f.lanes = f.whole_subgroups = true;
  f.subgroup = 32;
  f.max_range = uint64_t{1} << 32;
  f.groups = {65535, 65535, 65535};
  f.max_shared = 49152;
  return f;
}

Features card_without_tiles() {
  Features f = card();
  f.local_memory = f.is_large = false;
  return f;
}

std::string recorded(const RecordingDevice& device, const std::string& inputs, const std::string& body,
                     const std::string& outputs) {
  import::ImportedModel imported;
  auto program =
      ir::read_text("program(1.0)\n{\n func main<ios18>(" + inputs + ") {\n" + body + "\n } -> (" + outputs + ");\n}\n",
                    ops::table(), {});
  if (!program.ok()) return program.error().to_string();
  imported.program = std::move(*program);
  const ir::Block& main = imported.program.functions[0]->body();
  std::vector<ir::Type> types;
  for (const auto& v : main.inputs()) types.push_back(v->type);
  import::FunctionDescription f;
  f.name = "main";
  for (const auto& v : main.inputs()) f.inputs.emplace_back().name = v->name;
  f.outputs.resize(main.outputs().size());
  imported.description.functions = {f};
  imported.description.default_function = "main";
  imported.description.typed = true;
  runtime::CompileOptions options;
  options.plan.devices = {&device, &devices::reference::device()};
  options.plan.pinned_device = [&](const ir::Op&) { return &device; };
  auto model = runtime::Model::compile(std::move(imported), options);
  if (!model.ok()) return model.error().to_string();
  std::vector<runtime::InputValue> values;
  for (size_t i = 0; i < types.size(); i++) values.emplace_back(runtime::Absent{});
  const Status run = (*model)->predict({.types = types, .inputs = values}).take_status();
  return run.ok() ? device.take_text() : run.error().to_string();
}

}  // namespace moka::gpu_test
