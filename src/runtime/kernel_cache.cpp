// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_cache.h"

#include <algorithm>
#include <cmath>

#include "runtime/cache_file.h"
#include "runtime/machine_file.h"

namespace moka::runtime {

namespace {

constexpr MachineFormat kKernelTimes{"moka kernel times", 1};
constexpr int kMostThreads = 1 << 16;

Result<plan::Measurement> entry_of(const Json& json) {
  plan::Measurement m;
  m.shape = MOKA_TRY(text_of(json, "shape"));
  m.chosen = MOKA_TRY(text_of(json, "kernel"));
  m.by_rule = MOKA_TRY(text_of(json, "rule"));
  const auto threads = json.find("threads"), times = json.find("microseconds");
  if (threads == json.end() || !threads->is_number_integer() || *threads < 1 || *threads > kMostThreads)
    return fail(ErrorCode::malformed, "'", m.shape, "' has no number of threads");
  m.threads = threads->get<int>();
  if (times == json.end() || !times->is_object())
    return fail(ErrorCode::malformed, "'", m.shape, "' has no 'microseconds'");
  for (const auto& [kernel, time] : times->items()) {
    const double us = time.is_number() ? time.get<double>() : -1;
    if (!(us >= 0) || !std::isfinite(us)) return fail(ErrorCode::malformed, "'", m.shape, "' has a time that is none");
    m.times.push_back({kernel, us * 1e-6});
  }
  return m;
}

Result<std::vector<plan::Measurement>> entries_of(const Json& root, const KernelMachine& machine, int* others) {
  std::vector<plan::Measurement> out;
  for (const Json& section : root["machines"]) {
    const std::string processor = MOKA_TRY(text_of(section, "processor")), build = MOKA_TRY(text_of(section, "build"));
    if (processor != machine.processor || build != machine.build) {
      if (others != nullptr) ++*others;
      continue;
    }
    auto entries = section.find("entries");
    if (entries == section.end() || !entries->is_array()) return fail(ErrorCode::malformed, "no list 'entries'");
    for (const Json& e : *entries) out.push_back(MOKA_TRY(entry_of(e)));
  }
  return out;
}

Json to_json(const plan::Measurement& m) {
  Json times = Json::object();
  for (const plan::KernelTime& t : m.times) times[t.kernel] = std::round(t.seconds * 1e8) / 100;
  return {
      {"shape", m.shape}, {"threads", m.threads}, {"kernel", m.chosen}, {"rule", m.by_rule}, {"microseconds", times}};
}

/// An entry a line, so that people can read and compare files.
std::string render(const Json& root) {
  auto text = [](const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); };
  std::string out =
      cat("{\"format\": ", text(root["format"]), ", \"version\": ", kKernelTimes.version, ", \"machines\": [");
  bool first_section = true;
  for (const Json& section : root["machines"]) {
    out += cat(first_section ? "\n" : ",\n", "{\"processor\": ", text(section["processor"]),
               ", \"build\": ", text(section["build"]), ", \"entries\": [");
    first_section = false;
    bool first = true;
    for (const Json& e : section["entries"]) {
      out += (first ? "\n  " : ",\n  ") + text(e);
      first = false;
    }
    out += "]}";
  }
  return out + "]}\n";
}

}  // namespace

Result<std::vector<plan::Measurement>> parse_kernel_cache(std::string_view text, const KernelMachine& machine,
                                                          int* others) {
  const Json root = MOKA_TRY(parse_machine_file(text, kKernelTimes));
  return entries_of(root, machine, others);
}

std::string merged_kernel_cache(std::string_view before, const KernelMachine& machine,
                                std::span<const plan::Measurement> entries) {
  Json root{{"format", kKernelTimes.name}, {"version", kKernelTimes.version}, {"machines", Json::array()}};
  std::vector<plan::Measurement> kept;
  if (auto parsed = parse_machine_file(before, kKernelTimes); parsed.ok())
    if (auto mine = entries_of(*parsed, machine, nullptr); mine.ok()) {
      kept = std::move(*mine);
      for (const Json& section : (*parsed)["machines"])
        if (section["processor"] != machine.processor && section.value("entries", Json()).is_array())
          root["machines"].push_back(section);
    }
  Json section{{"processor", machine.processor}, {"build", machine.build}, {"entries", Json::array()}};
  for (const plan::Measurement& m : kept)
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const auto& e) { return e.shape == m.shape && e.threads == m.threads; }))
      section["entries"].push_back(to_json(m));
  for (const plan::Measurement& m : entries) section["entries"].push_back(to_json(m));
  root["machines"].push_back(std::move(section));
  return render(root);
}

Result<std::string> read_kernel_cache(const std::string& path) { return read_cache_file(path); }

Status update_kernel_cache(const std::string& path, const KernelMachine& machine,
                           std::span<const plan::Measurement> entries) {
  auto before = read_cache_file(path);
  return replace_cache_file(path, OutputKind::kernel_times,
                            merged_kernel_cache(before.ok() ? *before : std::string(), machine, entries));
}

Result<std::string> default_kernel_cache() { return users_cache_file("kernels.json", "the user's kernel cache"); }

}  // namespace moka::runtime
