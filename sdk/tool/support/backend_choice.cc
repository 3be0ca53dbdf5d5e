// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/backend_choice.h"

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

std::string check_pair(const std::string& text) {
  const size_t equals = text.find('=');
  const bool good = equals != std::string::npos && equals > 0;
  return good ? "" : text + ": write KEY=VALUE";
}

}  // namespace

void add_backend_options(CLI::App& verb, const BackendHelp& words, conformance::BackendChoice& choice) {
  verb.add_option("--backend", choice.name, words.about)
      ->envname("COLLET_BACKEND")
      ->capture_default_str()
      ->type_name("BACKEND");
  verb.add_flag("--no-fallback", choice.no_fallback, words.without);
  const auto keep = [&choice](const std::vector<std::string>& pairs) {
    for (const std::string& pair : pairs) {
      const size_t equals = pair.find('=');
      choice.options.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    }
  };
  verb.add_option_function<std::vector<std::string>>("--option", keep, "An option for the backend; may be repeated")
      ->check(CLI::Validator(check_pair, ""))
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

int report_unopened(const Status& status) {
  return status.code() == Code::InvalidArgument ? report(kUsage, status.message()) : report(status);
}

}  // namespace collet::tool
