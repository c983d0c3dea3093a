// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <charconv>
#include <cstdio>

namespace moka {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::malformed: return "malformed model";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::not_found: return "not found";
    case ErrorCode::io: return "input/output";
    case ErrorCode::out_of_budget: return "out of memory budget";
    case ErrorCode::data: return "bad value";
    case ErrorCode::internal: return "internal error";
    case ErrorCode::device_lost: return "device lost";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::deadline_exceeded: return "deadline exceeded";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string message)
    : rep_(std::make_unique<Rep>(Rep{code, std::move(message), {}, {}})) {}

std::string Error::to_string() const {
  return rep_->context.empty() ? rep_->message : rep_->context + ": " + rep_->message;
}

Error&& Error::in(std::string_view place) && {
  std::string& c = rep_->context;
  const std::string_view first = c.empty() ? rep_->message : c;
  if (first.starts_with(place) &&
      (first.size() == place.size() || first[place.size()] == ':' || first[place.size()] == ','))
    return std::move(*this);
  c = c.empty() ? std::string(place) : std::string(place) + ": " + c;
  return std::move(*this);
}

Error&& Error::of_device(std::string_view name) && {
  if (rep_->device.empty()) rep_->device = name;
  return std::move(*this);
}

namespace {
template <class T>
void append_number(std::string& out, T v) {
  char buf[32];
  auto r = std::to_chars(buf, buf + sizeof buf, v);
  out.append(buf, r.ptr);
}
}  // namespace

void append_to(std::string& out, std::string_view v) { out.append(v); }
void append_to(std::string& out, const char* v) { out.append(v); }
void append_to(std::string& out, const std::string& v) { out.append(v); }
void append_to(std::string& out, char v) { out.push_back(v); }
void append_to(std::string& out, bool v) { out.append(v ? "true" : "false"); }
void append_to(std::string& out, int v) { append_number(out, v); }
void append_to(std::string& out, unsigned v) { append_number(out, v); }
void append_to(std::string& out, long v) { append_number(out, v); }
void append_to(std::string& out, unsigned long v) { append_number(out, v); }
void append_to(std::string& out, long long v) { append_number(out, v); }
void append_to(std::string& out, unsigned long long v) { append_number(out, v); }
void append_to(std::string& out, double v) { append_number(out, v); }

}  // namespace moka
