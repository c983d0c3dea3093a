// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

namespace moka::cli {

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::option_text(const std::string& text) {
  option_->option_text(text);
  return *this;
}

Option& Option::check(Check check) {
  const std::string listed = check.choices.empty() ? "" : fmt::format("{{{}}}", fmt::join(check.choices, ","));
  option_->transform(CLI::Validator(std::move(check.message), listed));
  return *this;
}

Option& Option::needs(Option other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::delimiter(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option& Option::allow_extra_args(bool allow) {
  option_->allow_extra_args(allow);
  return *this;
}

Arguments Arguments::add_subcommand(const std::string& name, const std::string& help) const {
  return Arguments(*app_->add_subcommand(name, help));
}

template <class T>
Option Arguments::add_option(const std::string& names, T& to, const std::string& help) const {
  return Option(app_->add_option(names, to, help));
}
template Option Arguments::add_option(const std::string&, std::string&, const std::string&) const;
template Option Arguments::add_option(const std::string&, int&, const std::string&) const;
template Option Arguments::add_option(const std::string&, int64_t&, const std::string&) const;
template Option Arguments::add_option(const std::string&, uint32_t&, const std::string&) const;
template Option Arguments::add_option(const std::string&, uint64_t&, const std::string&) const;
template Option Arguments::add_option(const std::string&, double&, const std::string&) const;
template Option Arguments::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;
template Option Arguments::add_option(const std::string&, std::vector<int>&, const std::string&) const;

Option Arguments::add_flag(const std::string& names, bool& to, const std::string& help) const {
  return Option(app_->add_flag(names, to, help));
}

void Arguments::footer(const std::string& text) const { app_->footer(text); }

void Arguments::allow_extras() const { app_->allow_extras(); }

std::vector<std::pair<std::string, std::string>> Arguments::given() const {
  std::vector<std::pair<std::string, std::string>> out;
  std::map<const CLI::Option*, size_t> seen;
  for (const CLI::Option* option : app_->parse_order()) {
    const size_t i = seen[option]++;
    const bool flag = option->get_items_expected_max() == 0;
    if (flag || i < option->results().size())
      out.emplace_back(option->get_name(), flag ? std::string() : option->results()[i]);
  }
  return out;
}

std::vector<std::string> Arguments::remaining() const { return app_->remaining(); }

}  // namespace moka::cli
