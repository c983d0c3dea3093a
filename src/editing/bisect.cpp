// SPDX-License-Identifier: Apache-2.0
#include "editing/bisect.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "editing/cut.h"
#include "editing/join.h"
#include "editing/operations.h"
#include "editing/weights.h"
#include "format/weights/weight_store.h"

namespace moka::editing {
namespace {

using BlobSizes = std::map<std::pair<std::string, int64_t>, double>;  // bytes of blobs, by file and offset

Result<BlobSizes> blob_sizes(const format::ModelSource& source) {
  BlobSizes out;
  for (const auto& [name, content] : source.weights)
    if (name.ends_with(".bin"))
      for (const format::Blob& blob : MOKA_TRY_IN(format::list_blobs(content.joined()), cat("'", name, "'")))
        out[{name, static_cast<int64_t>(blob.offset)}] = static_cast<double>(blob.data.size());
  return out;
}

/// Whether an operation only makes constants. Both halves compute such operations.
bool makes_constants(const std::string& type) { return type == "const" || type.starts_with("constexpr_"); }

/// Which operations make and read the values of a function, by index.
struct Uses {
  std::map<std::string, size_t> made;
  std::map<std::string, size_t> last_read;
  std::vector<double> weights;  ///< for each operation: bytes of weights that no earlier operation reads
};

Result<Uses> uses_of(const std::vector<Message>& operations, const BlobSizes& sizes) {
  Uses out;
  std::map<std::string, double> constants;  // bytes behind values that are constants
  for (size_t i = 0; i < operations.size(); ++i) {
    const Message& op = operations[i];
    double bytes = 0;
    MOKA_TRY(for_messages(op, "MILSpec.Value.BlobFileValue", [&](const Message& blob) -> Status {
      const std::string file(format::WeightStore::relative_name(MOKA_TRY(text_of(blob, "fileName"))));
      const auto it = sizes.find({file, MOKA_TRY(integer_of(blob, "offset"))});
      if (it != sizes.end()) bytes += it->second;
      return {};
    }));
    const bool constant = makes_constants(MOKA_TRY(text_of(op, "type")));
    for (const std::string& name : MOKA_TRY(values_read(op))) {
      out.last_read[name] = i;
      if (const auto it = constants.find(name); it != constants.end()) {
        bytes += it->second;
        it->second = 0;
      }
    }
    for (const std::string& name : MOKA_TRY(values_defined(op))) {
      if (constant)
        constants[name] = std::exchange(bytes, 0);
      else
        out.made[name] = i;
    }
    out.weights.push_back(constant ? 0 : bytes);
  }
  return out;
}

/// For each operation: how many values a cut in front of it crosses, and whether the function can be cut there.
struct Places {
  std::vector<int> passing;
  std::vector<bool> possible;
};

Result<Places> places_of(const Operations& ops, const Uses& uses, const std::set<std::string>& states) {
  const std::map<std::string, TensorType> types = MOKA_TRY(ops.types());
  const size_t count = ops.list.size();
  std::vector<int> change(count + 1), wrong(count + 1);
  for (const auto& [name, made] : uses.made) {
    const auto read = uses.last_read.find(name);
    if (read == uses.last_read.end()) continue;
    ++change[made + 1];
    --change[read->second + 1];
    if (types.contains(name) && types.at(name).element != "STRING") continue;
    ++wrong[made + 1];
    --wrong[read->second + 1];
  }
  std::map<std::string, size_t> first_read;
  for (size_t i = count; i-- > 0;)
    for (const std::string& name : MOKA_TRY(values_read(ops.list[i])))
      if (states.contains(name)) first_read[name] = i;
  for (const auto& [name, first] : first_read) {  // a state belongs to one model
    ++wrong[first + 1];
    --wrong[uses.last_read.at(name) + 1];
  }
  Places out{std::vector<int>(count), std::vector<bool>(count)};
  int passing = 0, impossible = 0;
  for (size_t at = 0; at < count; ++at) {
    passing += change[at];
    impossible += wrong[at];
    out.passing[at] = passing;
    out.possible[at] = impossible == 0 && passing > 0;
  }
  return out;
}

}  // namespace

Result<Halves> bisect(const format::ModelSource& source) {
  const std::string kind = MOKA_TRY(kind_of(source.specification));
  if (kind != "mlProgram")
    return fail(ErrorCode::unsupported, "bisect: expected an ML program, got ", name_of_kind(kind));
  const std::vector<ProgramFunction> functions = MOKA_TRY(program_functions(source.specification));
  if (functions.size() != 1)
    return fail(ErrorCode::invalid_argument, "bisect: expected a program with one function, got ", functions.size());
  const ProgramFunction& function = functions[0];
  const Operations ops = MOKA_TRY(Operations::of(function));
  Uses uses = MOKA_TRY(uses_of(ops.list, MOKA_TRY(blob_sizes(source))));
  double total = 0;
  for (double bytes : uses.weights) total += bytes;
  if (total == 0)
    for (size_t i = 0; i < ops.list.size(); ++i)
      total += uses.weights[i] = makes_constants(MOKA_TRY(text_of(ops.list[i], "type"))) ? 0 : 1;
  const std::vector<std::string> outputs = MOKA_TRY(texts_of(function.block, "outputs"));
  size_t last_output = 0;  // the place of the last one
  for (const std::string& output : outputs)
    if (const auto it = uses.made.find(output); it != uses.made.end()) last_output = std::max(last_output, it->second);
  std::set<std::string> states;
  for (const Message& input : MOKA_TRY(function.function.children("inputs"))) {
    const Message type = MOKA_TRY(child_or_empty(input, "type"));
    if (MOKA_TRY(type.count("stateType")) > 0) states.insert(MOKA_TRY(text_of(input, "name")));
  }
  const Places places = MOKA_TRY(places_of(ops, uses, states));
  size_t best = 0;
  double best_cost = 0, done = 0;
  for (size_t at = 1; at <= last_output; ++at) {
    done += uses.weights[at - 1];
    if (!places.possible[at]) continue;
    constexpr double for_each_value = 0.02;
    const double cost = std::abs(done / total - 0.5) + for_each_value * (places.passing[at] - 1);
    if (best != 0 && cost >= best_cost) continue;
    best = at;
    best_cost = cost;
  }
  if (best == 0) return fail(ErrorCode::unsupported, "bisect: the program cannot be cut between two operations");
  std::vector<std::string> passing, returned, after;
  for (const std::string& output : outputs) {
    const auto made = uses.made.find(output);
    (made != uses.made.end() && made->second < best ? returned : after).push_back(output);
  }
  for (const auto& [name, made] : uses.made)
    if (const auto read = uses.last_read.find(name);
        made < best && read != uses.last_read.end() && read->second >= best) {
      passing.push_back(name);
      if (std::find(returned.begin(), returned.end(), name) == returned.end()) returned.push_back(name);
    }
  Halves out{source, source};
  out.first.specification = source.specification.copy();
  out.second.specification = source.specification.copy();
  MOKA_TRY(cut_part(out.first, {}, returned, {0, best}));
  MOKA_TRY(cut_part(out.second, passing, after, {best, ops.list.size()}));
  return out;
}

Status bisect_into_pipeline(format::ModelSource& source) {
  const Halves halves = MOKA_TRY(bisect(source));
  const Message description = MOKA_TRY(source.specification.child("description")).copy();
  source = halves.first;
  MOKA_TRY(append(source, "first", halves.second, "second"));
  return source.specification.set("description", description);
}

}  // namespace moka::editing
