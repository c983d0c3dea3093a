// SPDX-License-Identifier: Apache-2.0
#include "moka/energy.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace moka {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPollEvery = std::chrono::seconds(20);

/// A counter of a file in the folder of powercap, in microjoules.
struct RaplZone {
  fs::path file;
  std::string name;
  uint64_t range = 0;  ///< the counter starts again at 0 above it
  uint64_t last = 0;
  double joules = 0;
};

/// A number in a file of one line.
std::optional<uint64_t> number_in(const fs::path& path) {
  std::ifstream in(path);
  uint64_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

std::string line_in(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line.substr(0, 64);
}

/// What NVML offers of it: https://docs.nvidia.com/deploy/nvml-api.
class Nvml {
 public:
  struct Card {
    void* handle;
    std::string name;
    unsigned long long first = 0;  ///< millijoules
  };

  /// Says in `missing` what is not measured. Nothing where no driver of NVIDIA is installed.
  explicit Nvml(std::vector<std::string>& missing) {
    library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    int (*init)() = nullptr;
    int (*count)(unsigned*) = nullptr;
    int (*by_index)(unsigned, void**) = nullptr;
    int (*name)(void*, char*, unsigned) = nullptr;
    if (!find("nvmlInit_v2", init) || !find("nvmlDeviceGetCount_v2", count) ||
        !find("nvmlDeviceGetHandleByIndex_v2", by_index) || !find("nvmlDeviceGetName", name) ||
        !find("nvmlDeviceGetTotalEnergyConsumption", energy_) || !find("nvmlShutdown", shutdown_)) {
      missing.push_back("NVIDIA's GPUs: libnvidia-ml.so.1 is too old to tell their energy");
      return;
    }
    if (const int error = init(); error != 0) {
      missing.push_back(cat("NVIDIA's GPUs: nvmlInit fails with ", error));
      return;
    }
    is_open_ = true;
    unsigned n = 0;
    if (count(&n) != 0) n = 0;
    for (unsigned i = 0; i < n; i++) {
      Card card{};
      char text[96] = {};
      if (by_index(i, &card.handle) != 0) continue;
      card.name = name(card.handle, text, sizeof text) == 0 ? cat(text, n > 1 ? cat(" ", i) : "") : cat("GPU ", i);
      if (energy_(card.handle, &card.first) == 0)
        cards_.push_back(std::move(card));
      else
        missing.push_back(cat(card.name, ": its driver does not tell its energy"));
    }
  }
  ~Nvml() {
    if (is_open_) shutdown_();
    if (library_ != nullptr) ::dlclose(library_);
  }
  Nvml(const Nvml&) = delete;

  void add_to(Energy& energy) const {
    for (const Card& card : cards_) {
      unsigned long long now = 0;
      if (energy_(card.handle, &now) == 0 && now >= card.first)
        energy.parts.push_back({card.name, static_cast<double>(now - card.first) / 1e3});
      else
        energy.missing.push_back(card.name + ": its driver no longer tells its energy");
    }
  }

 private:
  template <class Function>
  bool find(const char* name, Function& to) {
    to = reinterpret_cast<Function>(::dlsym(library_, name));
    return to != nullptr;
  }

  void* library_ = nullptr;
  int (*energy_)(void*, unsigned long long*) = nullptr;
  int (*shutdown_)() = nullptr;
  std::vector<Card> cards_;
  bool is_open_ = false;
};

}  // namespace

double Energy::joules() const {
  return std::accumulate(parts.begin(), parts.end(), 0.0, [](double sum, const auto& p) { return sum + p.joules; });
}

struct EnergyMeter::Impl {
  std::vector<std::string> missing;
  std::vector<RaplZone> zones;
  Nvml nvml{missing};
  Clock::time_point polled;

  Impl() {
    find_zones();
    polled = Clock::now();
  }

  void find_zones() {
    const char* given = std::getenv("MOKA_POWERCAP");
    const fs::path root = given != nullptr ? given : "/sys/class/powercap";
    std::error_code error;
    if (!fs::is_directory(root, error)) {
      missing.push_back(cat("the processor: there is no ", root.string(), ", as in most virtual machines"));
      return;
    }
    std::vector<fs::path> found;
    for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error))
      if (it->path().filename().string().starts_with("intel-rapl:")) found.push_back(it->path());
    std::sort(found.begin(), found.end());
    for (const fs::path& zone : found) add_zone(zone);
    if (found.empty()) missing.push_back(cat("the processor: ", root.string(), " has no zone intel-rapl"));
  }

  /// Packages, and memory, which is not a part of its package. Cores and graphics are parts of packages, and psys
  /// contains them all.
  void add_zone(const fs::path& folder) {
    RaplZone zone{folder / "energy_uj", line_in(folder / "name")};
    const bool is_memory = zone.name == "dram";
    if (!zone.name.starts_with("package") && !is_memory) return;
    if (is_memory) {
      const std::string number = folder.filename().string();
      const std::string package = line_in(folder.parent_path() / number.substr(0, number.rfind(':')) / "name");
      if (!package.empty()) zone.name += " of " + package;
    }
    errno = 0;
    const auto now = number_in(zone.file);
    if (!now) {
      const int reason = errno;
      missing.push_back(cat(zone.name, ": ", zone.file.string(), ": ",
                            reason == EACCES ? "only root may read it"
                            : reason != 0    ? std::strerror(reason)
                                             : "no number"));
      return;
    }
    zone.last = *now;
    zone.range = number_in(folder / "max_energy_range_uj").value_or(0);
    zones.push_back(std::move(zone));
  }

  void read() {
    polled = Clock::now();
    for (RaplZone& zone : zones) {
      const auto now = number_in(zone.file);
      if (!now) continue;
      const uint64_t difference =
          *now >= zone.last ? *now - zone.last : zone.range - std::min(zone.last, zone.range) + *now;
      zone.joules += static_cast<double>(difference) / 1e6;
      zone.last = *now;
    }
  }
};

EnergyMeter::EnergyMeter() : impl_(new Impl) {}
EnergyMeter::EnergyMeter(EnergyMeter&&) noexcept = default;
EnergyMeter& EnergyMeter::operator=(EnergyMeter&&) noexcept = default;
EnergyMeter::~EnergyMeter() = default;

void EnergyMeter::poll() {
  if (Clock::now() - impl_->polled > kPollEvery) impl_->read();
}

Energy EnergyMeter::taken() {
  impl_->read();
  Energy out;
  out.missing = impl_->missing;
  for (const RaplZone& zone : impl_->zones) out.parts.push_back({zone.name, zone.joules});
  impl_->nvml.add_to(out);
  return out;
}

}  // namespace moka
