// SPDX-License-Identifier: Apache-2.0
#include "moka/cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "api/internal.h"
#include "base/checksum.h"
#include "boundary/path.h"
#include "kernel/device.h"
#include "kernel/fault.h"
#include "plan/packed_cache.h"
#include "runtime/model_content.h"
#include "runtime/packed_folder.h"

namespace moka {

namespace {

namespace fs = std::filesystem;

Result<std::string> folder_of(std::string cache) {
  auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (cache.empty()) cache = variable("MOKA_CACHE");
  if (cache == "off") return std::string();
  if (cache != "default") return cache;
  if (const std::string all = variable("XDG_CACHE_HOME"); all.starts_with('/')) return all + "/moka/packed";
  const std::string home = variable("HOME");
  if (home.empty()) return fail(ErrorCode::not_found, "the user's cache: neither XDG_CACHE_HOME nor HOME is set");
  return home + "/.cache/moka/packed";
}

}  // namespace

namespace api {

Result<PackedWeights> packed_weights_for(const ModelConfiguration& configuration, const std::string& model,
                                         std::span<const kernel::Device* const> devices, int threads) {
  PackedWeights out;
  if (model.empty()) return out;
  out.folder = MOKA_TRY(folder_of(configuration.cache));
  if (out.folder.empty()) return out;
  auto content = runtime::content_of_model(model, out.folder);
  if (content.ok()) {
    std::string scope = cat(content->digest, "\nthreads ", threads, "\nexact ",
                            configuration.precision == Precision::exact, "\noptimize ", configuration.optimize);
    for (const kernel::Device* d : devices) scope += cat("\n", d->name(), " ", d->packing());
    Digest name;
    name.add(std::as_bytes(std::span(scope.data(), scope.size())));
    scope += cat("\nbuild ", plan::build());
    std::error_code error;
    const fs::path path = fs::weakly_canonical(model, error);
    out.cache = std::make_shared<plan::PackedCache>(
        (fs::path(out.folder) / (name.text() + std::string(runtime::kPackedEnding))).string(), std::move(scope),
        path.string(), std::move(content->files));
  } else {
    warn(cat("packed weights are not kept: ", content.error().to_string()));
  }
  out.devices.assign(devices.begin(), devices.end());
  for (const kernel::Device* d : devices)
    if (Status s = d->read_code(out.folder); !s.ok()) warn(kernel::failed_on(*d, std::move(s).error()).to_string());
  return out;
}

void PackedWeights::save() const {
  if (!cache) return;
  if (cache->save()) runtime::trim_packed(folder, cache->path());
  for (const kernel::Device* d : devices)
    if (Status s = d->write_code(folder); !s.ok()) warn(s.error().to_string());
}

void PackedWeights::show_remark() const {
  if (!cache) return;
  if (const std::string remark = cache->remark(); !remark.empty()) warn(remark);
  // Updates the time of use, because a full folder drops the least recently used file first.
  if (cache->found_bytes() > 0) ::utimensat(AT_FDCWD, cache->path().c_str(), nullptr, 0);
}

}  // namespace api

std::string cache_folder(const std::string& cache) { return api::unwrap(folder_of(boundary::native(cache))); }

std::vector<CachedModel> cached_models(const std::filesystem::path& folder) {
  std::vector<CachedModel> out;
  for (const runtime::PackedFile& f : runtime::packed_files(boundary::native(folder))) {
    if (f.unfinished || f.path.extension() != runtime::kPackedEnding) continue;
    CachedModel m{f.path.string(), {}, static_cast<size_t>(f.bytes)};
    if (auto file = map_file(m.file); file.ok())
      if (auto parsed = plan::parse_packed_file(*file); parsed.ok()) {
        m.model = parsed->model;
        m.usable = parsed->scope.ends_with(cat("\nbuild ", plan::build()));
      }
    out.push_back(std::move(m));
  }
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return std::tie(a.model, a.file) < std::tie(b.model, b.file); });
  return out;
}

size_t clear_cache(const std::filesystem::path& folder) {
  size_t n = 0;
  for (const runtime::PackedFile& f : runtime::packed_files(boundary::native(folder))) {
    std::error_code error;
    if (fs::remove(f.path, error) && !f.unfinished && f.path.extension() != runtime::kContentEnding) n++;
    if (error) throw Exception(ErrorKind::io, cat("'", f.path.string(), "': ", error.message()));
  }
  return n;
}

}  // namespace moka
