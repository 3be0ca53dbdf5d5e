// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/elided.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace collet::tool {
namespace {

std::optional<ElidedChoice> choice_of(std::string_view text) {
  if (text == "refuse") return ElidedChoice{COLLET_ELIDED_REFUSE};
  if (text == "zeros") return ElidedChoice{COLLET_ELIDED_ZEROS};
  if (text == "counter") return ElidedChoice{COLLET_ELIDED_COUNTER};
  constexpr std::string_view kRandom = "random:";
  if (!text.starts_with(kRandom)) return std::nullopt;
  text.remove_prefix(kRandom.size());
  ElidedChoice choice{COLLET_ELIDED_RANDOM};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), choice.seed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return choice;
}

std::string check(const std::string& text) {
  return choice_of(text) ? "" : "'" + text + "' is none of refuse, zeros, counter, random:SEED";
}

}  // namespace

void add_elided_option(CLI::App& verb, ElidedChoice& choice) {
  verb.add_option_function<std::string>(
          "--elided", [&choice](const std::string& text) { choice = choice_of(text).value_or(ElidedChoice{}); },
          "Constants that HLO text leaves out, {...}: refuse, zeros, random:SEED, or counter, as XLA fills them")
      ->check(CLI::Validator(check, ""))
      ->default_str(choice.how == COLLET_ELIDED_COUNTER ? "counter" : "refuse")
      ->type_name("HOW");
}

}  // namespace collet::tool
