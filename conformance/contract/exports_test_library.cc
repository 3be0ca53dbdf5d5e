// SPDX-License-Identifier: Apache-2.0
// A library for exports_test.cc, which is built with hidden names and without.

int some_data = 1;
int some_function() {
  return some_data;
}
namespace {
int hidden_function() {
  return some_function();
}
}  // namespace

extern "C" __attribute__((visibility("default"))) int collet_backend_entry() {
  return hidden_function();
}
