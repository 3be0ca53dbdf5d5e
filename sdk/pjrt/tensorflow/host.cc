// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/tensorflow/host.h"

#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "sdk/pjrt/tensorflow/tensorflow_cpp.h"

namespace collet::tensorflow {
namespace {

/// Returns a handle of a library that the process has already loaded; null if it has not.
void* loaded(const char* name) {
  return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

void* find(void* library, const char* name) {
  return library ? dlsym(library, name) : nullptr;
}

// The following types have the layout and the calling convention of the types of TensorFlow 2.21's C++ functions.

/// An object of TensorFlow's, which only TensorFlow destroys.
struct Client;
struct KeepClient {
  void operator()(Client*) const {}
};
using ClientPointer = std::unique_ptr<Client, KeepClient>;

/// absl::StatusOr<std::unique_ptr<xla::PjRtClient>>.
struct StatusOrClient {
  uintptr_t word = 0;
  Client* client = nullptr;
  ~StatusOrClient() {}
};

/// An empty absl::flat_hash_map, whose words are all zero if elements are not stored in the map itself.
struct EmptyMap {
  uintptr_t words[8] = {};
};

using GetCApiClient = StatusOrClient(std::string_view, const EmptyMap&, std::shared_ptr<void>);
using SetClient = Status(const DeviceType&, ClientPointer);

constexpr const char* kGetCApiClient =
    "_ZN3xla13GetCApiClientESt17basic_string_viewIcSt11char_traitsIcEERKN4absl12lts_2025081413flat_hash_mapINSt7__"
    "cxx1112basic_stringIcS2_SaIcEEESt7variantIJSA_blSt6vectorIlSaIlEEfEENS5_18container_internal10StringHashENSG_"
    "8StringEqESaISt4pairIKSA_SF_EEEESt10shared_ptrINS_22KeyValueStoreInterfaceEE";
constexpr const char* kSetClient =
    "_ZN10tensorflow38SetPjRtClientInTFGlobalResourceManagerERKN3tsl10DeviceTypeESt10unique_ptrIN3xla10PjRtClientESt14"
    "default_deleteIS6_EE";

}  // namespace

void* find_symbol(const char* name) {
  static void* const framework = loaded("libtensorflow_framework.so.2");
  static void* const cc = loaded("libtensorflow_cc.so.2");
  void* const found = find(framework, name);
  return found ? found : find(cc, name);
}

void set_status(TF_Status* status, TF_Code code, const std::string& message) {
  static const auto set = c_function<void(TF_Status*, TF_Code, const char*)>("TF_SetStatus");
  if (set && status) set(status, code, message.c_str());
}

std::string version() {
  const auto get = c_function<const char*()>("TF_Version");
  const char* const text = get ? get() : nullptr;
  return text ? text : "";
}

std::string make_client(const std::string& device_type) {
  const auto get_client = c_function<GetCApiClient>(kGetCApiClient);
  const auto set_client = c_function<SetClient>(kSetClient);
  if (!get_client || !set_client)
    return "TensorFlow " + version() + " lacks functions that this plugin needs; it is made for TensorFlow 2.21";
  StatusOrClient made = get_client(device_type, EmptyMap{}, nullptr);
  if (made.word != 1 || !made.client) return "the PJRT client could not be created";
  ClientPointer pointer(made.client);
  const Status set = set_client(DeviceType{device_type}, std::move(pointer));
  return set.word == 1 ? "" : "TensorFlow does not take the PJRT client";
}

}  // namespace collet::tensorflow
