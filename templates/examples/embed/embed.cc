// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.hpp>
#include <iostream>

namespace {

constexpr char kProgram[] = R"(HloModule affine

ENTRY main {
  x = f32[2,3] parameter(0)
  w = f32[3] parameter(1)
  rows = f32[2,3] broadcast(w), dimensions={1}
  scaled = f32[2,3] multiply(x, rows)
  ROOT y = f32[2,3] add(scaled, x)
}
)";

int fail(const collet::Error& error) {
  std::cerr << "embed: " << error.message << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto client = collet::Client::open(argc > 1 ? argv[1] : nullptr);
  if (!client) return fail(client.error());
  auto module = collet::Module::read(kProgram, "affine.hlo");
  if (!module) return fail(module.error());
  auto executable = client->compile(*module);
  if (!executable) return fail(executable.error());

  const float x[] = {1, 2, 3, 4, 5, 6}, w[] = {10, 20, 30};
  auto first = client->upload<float>({2, 3}, x), second = client->upload<float>({3}, w);
  if (!first || !second) return fail(first ? second.error() : first.error());
  auto results = executable->run({*first, *second});
  if (!results) return fail(results.error());
  auto numbers = (*results)[0].to_vector<float>();  // waits for the results
  if (!numbers) return fail(numbers.error());

  for (const float y : *numbers) std::cout << y << ' ';
  const auto facts = executable->facts();
  std::cout << "\n"
            << client->info().backend << ": " << facts.device_ops << " ops on the device, " << facts.fallback_ops
            << " on the fallback\n";
  return 0;
}
