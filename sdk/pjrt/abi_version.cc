// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/abi_version.h"

#include <collet/hash.h>

#include <string>
#include <string_view>
#include <utility>

#include "sdk/pjrt/api/extensions.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/client.h"
#include "sdk/pjrt/executable.h"
#include "sdk/pjrt/wire.h"

namespace collet::pjrt {
namespace {

/// The version of a client or an executable; callers hold it as either of two opaque types.
struct Version {
  uint64_t platform = 0;
  std::string text;
};

enum Field : uint32_t { kPlatform = 1, kText = 2 };

Version version_of(const PJRT_Client& client) {
  const std::string& platform = client.settings.platform;
  return {collet_hash_bytes(0, platform.data(), platform.size()), client.version};
}

template <typename Opaque>
Opaque* hand_out(Version version) {
  return reinterpret_cast<Opaque*>(new Version(std::move(version)));
}
template <typename Opaque>
const Version& version_in(const Opaque* opaque) {
  return *reinterpret_cast<const Version*>(opaque);
}

PJRT_Error* compare(const Version& mine, const Version& other) {
  if (mine.platform == other.platform && mine.text == other.text) return nullptr;
  return failed_precondition("it is of '" + other.text + "', this is '" + mine.text + "'" +
                             (mine.platform == other.platform ? "" : ", and of another platform"));
}

/// Calls `body` on a copy of the caller's arguments, all of which every caller has.
template <typename Args, typename Body>
PJRT_Error* checked(Args* caller, const Body& body) {
  return guarded(caller, "an AbiVersion argument", sizeof(Args), sizeof(Args), body);
}

PJRT_Error* of_client(PJRT_Client_RuntimeAbiVersion_Args* caller) {
  return checked(caller, [](auto& args) -> PJRT_Error* {
    args.abi_version = hand_out<PJRT_RuntimeAbiVersion>(version_of(*args.client));
    return nullptr;
  });
}

PJRT_Error* of_executable(PJRT_Executable_GetAbiVersion_Args* caller) {
  return checked(caller, [](auto& args) -> PJRT_Error* {
    args.abi_version = hand_out<PJRT_ExecutableAbiVersion>(version_of(*args.executable->program->client));
    return nullptr;
  });
}

template <typename Args>
PJRT_Error* destroy(Args* caller) {
  return checked(caller, [](auto& args) -> PJRT_Error* {
    delete reinterpret_cast<Version*>(args.abi_version);
    return nullptr;
  });
}

PJRT_Error* with_runtime(PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args* caller) {
  return checked(caller,
                 [](auto& args) { return compare(version_in(args.abi_version), version_in(args.other_abi_version)); });
}

PJRT_Error* with_executable(PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args* caller) {
  return checked(caller, [](auto& args) {
    return compare(version_in(args.abi_version), version_in(args.executable_abi_version));
  });
}

template <typename Args>
PJRT_Error* to_proto(Args* caller) {
  return checked(caller, [](auto& args) -> PJRT_Error* {
    const Version& version = version_in(args.abi_version);
    auto* bytes = new std::string;
    put_number(*bytes, kPlatform, version.platform);
    put_bytes(*bytes, kText, version.text);
    args.serialized_proto = bytes->data();
    args.serialized_proto_size = bytes->size();
    args.serialized_proto_holder = reinterpret_cast<PJRT_SerializedProto*>(bytes);
    args.serialized_proto_deleter = [](PJRT_SerializedProto* made) { delete reinterpret_cast<std::string*>(made); };
    return nullptr;
  });
}

template <typename Args>
PJRT_Error* platform_id(Args* caller) {
  return checked(caller, [](auto& args) -> PJRT_Error* {
    args.platform_id = version_in(args.abi_version).platform;
    return nullptr;
  });
}

template <typename Opaque, typename Args>
PJRT_Error* from_proto(Args* caller) {
  return checked(caller, [](auto& args) -> PJRT_Error* {
    WireReader reader({args.serialized_proto, args.serialized_proto_size});
    Version version;
    while (reader.next()) {
      if (reader.field() == kPlatform) version.platform = reader.number();
      if (reader.field() == kText) version.text = reader.bytes();
    }
    if (!reader.ok() || version.text.empty()) return invalid_argument("these bytes are no version");
    args.abi_version = hand_out<Opaque>(std::move(version));
    return nullptr;
  });
}

}  // namespace

PJRT_Extension_Base* abi_version_extension(PJRT_Extension_Base* next) {
  static PJRT_AbiVersion_Extension extension = {
      {sizeof(PJRT_AbiVersion_Extension), PJRT_Extension_Type_AbiVersion, nullptr},
      of_client,
      of_executable,
      destroy<PJRT_RuntimeAbiVersion_Destroy_Args>,
      with_runtime,
      with_executable,
      to_proto<PJRT_RuntimeAbiVersion_ToProto_Args>,
      platform_id<PJRT_RuntimeAbiVersion_PlatformId_Args>,
      destroy<PJRT_ExecutableAbiVersion_Destroy_Args>,
      to_proto<PJRT_ExecutableAbiVersion_ToProto_Args>,
      platform_id<PJRT_ExecutableAbiVersion_PlatformId_Args>,
      from_proto<PJRT_RuntimeAbiVersion>,
      from_proto<PJRT_ExecutableAbiVersion>};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace collet::pjrt
