// SPDX-License-Identifier: Apache-2.0
#include "api/c_support.h"

#include <algorithm>
#include <cmath>

#include "boundary/errors.h"

using moka::ErrorKind;
using moka::Exception;
using moka::api::guarded;

namespace {

thread_local std::string last_error;

moka_status failed(moka_status status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

}  // namespace

namespace moka::api {

moka_status caught() noexcept {
  return tell_caught(
      [](ErrorKind kind, const char* message) { return failed(static_cast<moka_status>(kind), message); });
}

void wrong(const std::string& message) { throw Exception(ErrorKind::invalid_argument, message); }

std::string_view need_text(const char* text, const char* argument) { return &need(text, argument); }

void check_index(size_t index, size_t count, const char* what) {
  if (index >= count) wrong(cat(what, ": expected an index below ", count, ", got ", index));
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> out;
  for (const std::string& text : texts) out.push_back(text.c_str());
  return out;
}

std::optional<std::chrono::steady_clock::time_point> deadline_of(double timeout) {
  if (std::isnan(timeout) || timeout < 0) wrong(cat("timeout: expected seconds, got ", timeout));
  if (timeout == 0) return std::nullopt;
  constexpr double kLongest = 1e9;  // a clock of nanoseconds holds ten times as much
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                std::chrono::duration<double>(std::min(timeout, kLongest)));
}

MultiArray borrowed_array(const moka_array& a) {
  if (a.rank > 0 && a.shape == nullptr) wrong("array: expected a shape, got NULL");
  if (a.rank > 64) wrong(cat("array: expected few dimensions, got ", a.rank));
  std::vector<int64_t> shape(a.shape, a.shape + a.rank), strides;
  if (a.strides != nullptr) strides.assign(a.strides, a.strides + a.rank);
  MultiArray array(a.data, enumerator<DataType>(a.type, MOKA_BOOLEAN + 1, "element type"), std::move(shape),
                   std::move(strides));
  if (a.data == nullptr && array.count() > 0) wrong("array: expected data, got NULL");
  return array;
}

moka_array c_array(const MultiArray& a) {
  // One struct of C describes arrays that are read and arrays that are written.
  return {const_cast<void*>(a.data()), static_cast<moka_data_type>(a.type()), a.shape().size(), a.shape().data(),
          a.strides().data()};
}

}  // namespace moka::api

extern "C" {

const char* moka_version(void) { return MOKA_VERSION; }

const char* moka_status_name(moka_status status) {
  switch (status) {
    case MOKA_OK: return "ok";
    case MOKA_INVALID_ARGUMENT: return "invalid argument";
    case MOKA_MALFORMED: return "malformed model";
    case MOKA_UNSUPPORTED: return "unsupported";
    case MOKA_NOT_FOUND: return "not found";
    case MOKA_IO: return "input/output";
    case MOKA_OUT_OF_BUDGET: return "out of memory budget";
    case MOKA_DATA: return "bad value";
    case MOKA_INTERNAL: return "internal error";
    case MOKA_DEVICE_LOST: return "device lost";
    case MOKA_CANCELLED: return "cancelled";
    case MOKA_DEADLINE_EXCEEDED: return "deadline exceeded";
  }
  return "unknown";
}

const char* moka_last_error(void) { return last_error.c_str(); }

moka_status moka_set_warning_handler(moka_warning_handler handler, void* context) {
  return guarded([&] {
    if (handler == nullptr) return moka::set_warning_handler({});
    moka::set_warning_handler([handler, context](const std::string& text) { handler(context, text.c_str()); });
  });
}

}  // extern "C"
