// SPDX-License-Identifier: Apache-2.0
#include "import/classic_util.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "format/model_file.h"
#include "ops/common/common.h"

namespace moka::test {

using ir::DType;
using ir::RuntimeValue;
using ir::Tensor;
using ir::Type;

std::string golden_folder() { return MOKA_CLASSIC_GOLDEN; }

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorCode::not_found, path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Result<std::string> gunzip(const std::string& path) {
  std::string in = MOKA_TRY(read_file(path));
  z_stream z{};
  if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) return fail(ErrorCode::io, "zlib");
  z.next_in = reinterpret_cast<Bytef*>(in.data());
  z.avail_in = static_cast<uInt>(in.size());
  std::string out;
  int code = Z_OK;
  while (code == Z_OK) {
    char buffer[65536];
    z.next_out = reinterpret_cast<Bytef*>(buffer);
    z.avail_out = sizeof(buffer);
    code = inflate(&z, Z_NO_FLUSH);
    out.append(buffer, sizeof(buffer) - z.avail_out);
  }
  inflateEnd(&z);
  if (code != Z_STREAM_END) return fail(ErrorCode::malformed, path);
  return out;
}

Result<import::ImportedModel> import_bytes(std::string bytes) {
  format::ModelFile file = MOKA_TRY(format::open_model_bytes(Bytes::from(std::move(bytes)), {}));
  return import::import_model(file, {});
}

namespace {

double number(const Json& v) {
  return v.is_string() ? std::strtod(v.get<std::string>().c_str(), nullptr) : v.get<double>();
}

Result<RuntimeValue> value(const Type& type, const Json& v) {
  if (type.is_dict()) {
    if (!v.is_object() || !v.contains("keys")) return fail(ErrorCode::invalid_argument, "not a dictionary");
    ir::Dict d;
    d.string_keys = type.element(0).dtype() == DType::string;
    for (const Json& k : v["keys"])
      if (d.string_keys)
        d.text_keys.push_back(k);
      else
        d.int_keys.push_back(k);
    for (const Json& x : v["values"]) d.values.push_back(number(x));
    return RuntimeValue(std::move(d));
  }
  std::vector<int64_t> dims;
  Json data = v;
  if (v.is_object()) {
    if (!v.contains("shape")) return fail(ErrorCode::invalid_argument, "not an array");
    dims = v["shape"].get<std::vector<int64_t>>();
    data = v["data"];
  } else if (v.is_array()) {
    dims = {static_cast<int64_t>(v.size())};
  } else {
    data = Json::array({v});
  }
  ir::Shape shape = MOKA_TRY(ir::Shape::make(dims));
  Tensor t = MOKA_TRY(Tensor::zeros(type.dtype(), shape));
  for (size_t i = 0; i < data.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    if (type.dtype() == DType::string)
      t.view().as<std::string>()[i] = data[i].get<std::string>();
    else if (ir::is_float(type.dtype()))
      store_f64(t.view(), at, number(data[i]));
    else
      store_i64(t.view(), at, data[i].get<int64_t>());
  }
  return RuntimeValue(std::move(t));
}

void expect_number(double actual, const Json& expected, double tolerance, const std::string& what) {
  double e = number(expected);
  if (std::isnan(e))
    EXPECT_TRUE(std::isnan(actual)) << what;
  else if (tolerance == 0)
    EXPECT_EQ(actual, e) << what;
  else
    EXPECT_NEAR(actual, e, tolerance * std::max(1.0, std::abs(e))) << what;
}

void expect_dict(const RuntimeValue& actual, const Json& expected, double tolerance, const std::string& what) {
  ASSERT_NE(actual.dict, nullptr) << what;
  const ir::Dict& d = *actual.dict;
  ASSERT_EQ(d.size(), expected["keys"].size()) << what;
  for (size_t i = 0; i < d.size(); ++i) {
    Json key = d.string_keys ? Json(d.text_keys[i]) : Json(d.int_keys[i]);
    auto it = std::find(expected["keys"].begin(), expected["keys"].end(), key);
    ASSERT_NE(it, expected["keys"].end()) << what << " has no key " << key;
    expect_number(d.values[i], expected["values"][static_cast<size_t>(it - expected["keys"].begin())], tolerance,
                  what + "[" + key.dump() + "]");
  }
}

}  // namespace

Result<std::map<std::string, RuntimeValue>> predict(const import::ImportedModel& model, const Json& inputs) {
  const import::FunctionDescription& description = model.description.functions[0];
  const ir::Function& f = *model.program.functions[0];
  std::vector<RuntimeValue> values;
  for (size_t i = 0; i < description.inputs.size(); ++i) {
    auto it = inputs.find(description.inputs[i].name);
    if (it == inputs.end())
      return fail(ErrorCode::invalid_argument, "input '", description.inputs[i].name, "' is absent");
    values.push_back(MOKA_TRY(value(f.body().inputs()[i]->type, *it)));
  }
  ir::EvaluateOptions options;
  options.table = &ops::table();
  std::vector<RuntimeValue> results = MOKA_TRY(ir::evaluate(f, values, options));
  std::map<std::string, RuntimeValue> out;
  for (size_t i = 0; i < results.size(); ++i) out[description.outputs[i].name] = std::move(results[i]);
  return out;
}

void expect_value(const RuntimeValue& actual, const Json& expected, double tolerance, const std::string& what) {
  if (expected.is_object() && expected.contains("keys")) return expect_dict(actual, expected, tolerance, what);
  Json data = expected;
  const Tensor& t = actual.tensor;
  if (expected.is_object()) {
    EXPECT_EQ(t.shape().to_vector(), expected["shape"].get<std::vector<int64_t>>()) << what;
    data = expected["data"];
  } else if (!expected.is_array()) {
    EXPECT_EQ(t.shape().rank(), 0) << what;
    data = Json::array({expected});
  }
  ASSERT_EQ(static_cast<size_t>(t.count()), data.size()) << what;
  for (size_t i = 0; i < data.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    std::string where = what + "[" + std::to_string(i) + "]";
    if (t.dtype() == DType::string)
      EXPECT_EQ(t.as<std::string>()[i], data[i].get<std::string>()) << where;
    else if (t.dtype() == DType::int64)
      EXPECT_EQ(load_i64(t.view(), at), data[i].get<int64_t>()) << where;
    else
      expect_number(load_f64(t.view(), at), data[i], tolerance, where);
  }
}

}  // namespace moka::test
