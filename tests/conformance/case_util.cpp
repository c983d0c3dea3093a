// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_util.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "ir/op_def.h"
#include "ir/text_reader.h"

namespace moka::conformance {

using namespace ir;
using nlohmann::json;

namespace {

template <class T>
T take(Result<T> r, const std::string& where) {
  if (!r.ok()) throw std::runtime_error(where + ": " + r.error().to_string());
  return std::move(r).value();
}

Tensor tensor_of(const json& j, const std::string& where) {
  const DType dtype = dtype_from_string(j.at("dtype").get<std::string>());
  if (dtype == DType::none) throw std::runtime_error(where + ": unknown element type");
  const auto dims = j.at("shape").get<std::vector<int64_t>>();
  const Shape shape = take(Shape::make(dims), where);
  const json& data = j.at("data");
  if (static_cast<int64_t>(data.size()) != shape.count())
    throw std::runtime_error(where + ": data does not fit its shape");
  if (dtype == DType::string) return Tensor::strings(shape, data.get<std::vector<std::string>>());
  Tensor t = take(Tensor::zeros(dtype, shape), where);
  const TensorView view = t.view();
  int64_t i = 0;
  for (const json& v : data) {
    if (v.is_string()) {
      const auto text = v.get<std::string>();
      const double inf = std::numeric_limits<double>::infinity();
      store_f64(view, i, text == "nan" ? std::numeric_limits<double>::quiet_NaN() : text == "inf" ? inf : -inf);
    } else if (v.is_boolean()) {
      store_i64(view, i, v.get<bool>());
    } else if (is_float(dtype)) {
      store_f64(view, i, v.get<double>());
    } else if (v.is_number_unsigned()) {
      store_i64(view, i, static_cast<int64_t>(v.get<uint64_t>()));
    } else {
      store_i64(view, i, v.get<int64_t>());
    }
    ++i;
  }
  return t;
}

}  // namespace

std::vector<Case> load_cases(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const auto& path : files) {
    std::ifstream in(path);
    const json file = json::parse(in);
    for (const json& j : file.at("cases")) {
      Case c;
      c.op = file.at("op").get<std::string>();
      c.name = j.at("name").get<std::string>();
      c.program = j.at("program").get<std::string>();
      const std::string where = c.op + " " + c.name;
      for (const auto& [name, value] : j.at("inputs").items())
        c.inputs.push_back({name, tensor_of(value, where + ", input " + name)});
      for (const json& value : j.at("outputs")) {
        const auto name = value.at("name").get<std::string>();
        c.outputs.push_back({name, tensor_of(value, where + ", output " + name)});
      }
      if (j.contains("tolerance")) c.tolerance = j.at("tolerance").get<double>();
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

Result<Program> read_program(const Case& c) {
  Program program = MOKA_TRY(read_text(c.program, ops::table()));
  if (program.functions.size() != 1) return fail(ErrorCode::malformed, "expected one function in a case");
  return program;
}

Result<std::vector<RuntimeValue>> ordered_inputs(const Case& c, const Function& f) {
  std::vector<RuntimeValue> inputs;
  for (const auto& v : f.body().inputs()) {
    const auto it = std::find_if(c.inputs.begin(), c.inputs.end(), [&](const Named& n) { return n.name == v->name; });
    if (it == c.inputs.end()) return fail(ErrorCode::not_found, "the case has no input '", v->name, "'");
    if (v->type.is_state()) {
      // A run writes into this copy, since the case must not change.
      Tensor own = MOKA_TRY(Tensor::zeros(it->tensor.dtype(), it->tensor.shape()));
      std::memcpy(own.mutable_data(), it->tensor.data(), own.bytes());
      inputs.emplace_back(std::move(own));
    } else {
      inputs.emplace_back(it->tensor);
    }
  }
  return inputs;
}

double tolerance_of(const Case& c, DType dtype) {
  if (c.tolerance) return *c.tolerance;
  const bool low = dtype == DType::fp16 || dtype == DType::bf16;
  const OpDef* def = ops::table().find(c.op);
  const Tolerance t = def == nullptr ? Tolerance{} : def->versions.back().tolerance;
  return low ? t.fp16 : t.fp32;
}

std::string difference(const Tensor& got, const Tensor& expected, double tolerance) {
  const Type a = got.empty_handle() ? Type() : Type::tensor(got.dtype(), got.shape());
  const Type b = Type::tensor(expected.dtype(), expected.shape());
  if (a != b) return cat("expected ", b, ", got ", a);
  const TensorView g = got.view(), e = expected.view();
  for (int64_t i = 0; i < e.count(); ++i) {
    if (e.dtype == DType::string) {
      if (g.as<std::string>()[i] != e.as<std::string>()[i])
        return cat("element ", i, ": expected '", e.as<std::string>()[i], "', got '", g.as<std::string>()[i], "'");
    } else if (!is_float(e.dtype)) {
      if (load_i64(g, i) != load_i64(e, i))
        return cat("element ", i, ": expected ", load_i64(e, i), ", got ", load_i64(g, i));
    } else {
      const double x = load_f64(g, i), y = load_f64(e, i);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      if (!(std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(y))) || std::isinf(y))
        return cat("element ", i, ": expected ", y, ", got ", x, " (allowed relative difference ", tolerance, ")");
    }
  }
  return {};
}

}  // namespace moka::conformance
