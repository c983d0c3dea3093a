// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

/// Reads what encode.h writes.
namespace moka::trace {

struct Track {
  std::string name, process;
  std::string thread;  ///< "thread 4711, worker"
  uint64_t parent = 0;
  bool is_counter = false, is_bytes = false, is_process = false;
};

struct Slice {
  uint64_t track = 0;
  int64_t from = 0, to = -1;  ///< nanoseconds; `to` -1: it has no end
  int depth = 0;              ///< of slices around it on its track
  std::string name, kind;
  std::map<std::string, std::string> texts;
  std::map<std::string, int64_t> numbers;
};

struct Sample {
  uint64_t track = 0;
  int64_t at = 0, value = 0;
};

struct Contents {
  std::map<uint64_t, Track> tracks;
  std::vector<Slice> slices;  ///< in the order in which they begin in the file
  std::vector<Sample> samples;
};

/// Ignores an incomplete packet at the end. Error malformed: the file has no packet of a trace, or a contradictory one.
Result<Contents> read(std::span<const std::byte> bytes);
/// Errors: also not_found, io.
Result<Contents> read_file(const std::string& path);

}  // namespace moka::trace
