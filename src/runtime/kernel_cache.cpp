#include "runtime/kernel_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace moka::runtime {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::string_view kFormat = "moka kernel times";
constexpr int kVersion = 1, kMaxDepth = 8, kMostThreads = 1 << 16;
constexpr size_t kMostBytes = 16 << 20;

Result<Json> parse(std::string_view text) {
  bool deep = false;
  auto limit = [&deep](int depth, Json::parse_event_t, Json&) {
    deep |= depth > kMaxDepth;
    return !deep;
  };
  Json root = Json::parse(text.begin(), text.end(), limit, false);
  if (deep || !root.is_object()) return fail(ErrorCode::malformed, "no JSON object, or a damaged one");
  if (auto it = root.find("format"); it == root.end() || *it != kFormat)
    return fail(ErrorCode::malformed, "its format is not '", kFormat, "'");
  if (auto it = root.find("version"); it == root.end() || !it->is_number_integer() || *it != kVersion)
    return fail(ErrorCode::unsupported, "its version is not ", kVersion);
  if (auto it = root.find("machines"); it == root.end() || !it->is_array())
    return fail(ErrorCode::malformed, "it has no list 'machines'");
  return root;
}

Result<std::string> text_of(const Json& object, const char* key) {
  auto it = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || it == object.end() || !it->is_string())
    return fail(ErrorCode::malformed, "no text '", key, "' where one is needed");
  return it->get<std::string>();
}

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
  std::string out = cat("{\"format\": ", text(root["format"]), ", \"version\": ", kVersion, ", \"machines\": [");
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

Error io_error(const std::string& path, std::string_view what) {
  return fail(ErrorCode::io, "'", path, "': ", what, ": ", std::strerror(errno));
}

Status write_new(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return io_error(path, "making it");
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    done += static_cast<size_t>(n);
  }
  Status status;
  if (done < text.size() || fsync(file) != 0) status = io_error(path, "writing");
  if (close(file) != 0 && status.ok()) status = io_error(path, "closing");
  return status;
}

}  // namespace

Result<std::vector<plan::Measurement>> parse_kernel_cache(std::string_view text, const KernelMachine& machine,
                                                          int* others) {
  const Json root = MOKA_TRY(parse(text));
  return entries_of(root, machine, others);
}

std::string merged_kernel_cache(std::string_view before, const KernelMachine& machine,
                                std::span<const plan::Measurement> entries) {
  Json root{{"format", kFormat}, {"version", kVersion}, {"machines", Json::array()}};
  std::vector<plan::Measurement> kept;
  if (auto parsed = parse(before); parsed.ok())
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

Result<std::string> read_kernel_cache(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return fail(ErrorCode::not_found, "'", path, "' does not exist");
  if (!fs::is_regular_file(status)) return fail(ErrorCode::io, "'", path, "' is no file");
  std::ifstream in(path, std::ios::binary);
  if (!in) return io_error(path, "opening");
  std::string text(kMostBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return io_error(path, "reading");
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kMostBytes) return fail(ErrorCode::malformed, "'", path, "' has more than ", kMostBytes, " bytes");
  return text;
}

Status update_kernel_cache(const std::string& path, const KernelMachine& machine,
                           std::span<const plan::Measurement> entries) {
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) {
    fs::create_directories(folder, error);
    if (error) return fail(ErrorCode::io, "'", folder.string(), "': ", error.message());
  }
  auto before = read_kernel_cache(path);
  const std::string text = merged_kernel_cache(before.ok() ? *before : std::string(), machine, entries);
  static std::atomic<int> number{0};
  const std::string made = cat(path, ".", getpid(), ".", number++);
  Status status = write_new(made, text);
  if (status.ok() && std::rename(made.c_str(), path.c_str()) != 0) status = io_error(path, "replacing");
  if (!status.ok()) std::remove(made.c_str());
  return status;
}

Result<std::string> default_kernel_cache() {
  auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (cache.starts_with('/')) return cache + "/moka/kernels.json";
  if (home.empty())
    return fail(ErrorCode::not_found, "the user's kernel cache: neither XDG_CACHE_HOME nor HOME is set");
  return home + "/.cache/moka/kernels.json";
}

}  // namespace moka::runtime
