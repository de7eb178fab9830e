// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What ONNX Runtime calls: the two functions that the library exports, and the factory that they
// hand out.
#include <onnxruntime_cxx_api.h>
#include <onnxruntime_ep_device_ep_metadata_keys.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api.h"
#include "base/status.h"
#include "context.h"
#include "ort/library.h"
#include "provider.h"

namespace tenonnx::simnpu {
namespace {

const std::string& own_version() {
  static const std::string text(version());
  return text;
}

// A context for this format and a device that this machine knows, with the hash of its file.
bool can_load(std::string_view compatibility) {
  constexpr std::string_view kDevice = ";device=";
  const std::size_t at = compatibility.find(kDevice);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = compatibility.substr(at + kDevice.size());
  const auto device = find_device(rest.substr(0, rest.find(';')));
  return device.ok() && compatibility == compatibility_of(*device);
}

class Factory final : public OrtEpFactory {
 public:
  explicit Factory(std::string_view registered) : OrtEpFactory{} {
    // A device of its own may be made where the application allows it by this end of the name; else
    // the CPU stands for it.
    virtual_ = registered.ends_with(".virtual");
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEpFactory*) noexcept -> const char* { return kProviderName; };
    GetVendor = [](const OrtEpFactory*) noexcept -> const char* { return kVendor; };
    GetVendorId = [](const OrtEpFactory*) noexcept -> std::uint32_t { return kVendorId; };
    GetVersion = [](const OrtEpFactory*) noexcept -> const char* { return own_version().c_str(); };
    GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                             std::size_t count, OrtEpDevice** out, std::size_t room,
                             std::size_t* made) noexcept -> OrtStatus* {
      return guarded([&] {
        return static_cast<Factory*>(self)->supported_devices({devices, count}, {out, room}, made);
      });
    };
    CreateEp = [](OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*,
                  std::size_t, const OrtSessionOptions* session, const OrtLogger* logger,
                  OrtEp** made) noexcept -> OrtStatus* {
      return guarded([&]() -> Status {
        TENONNX_ASSIGN_OR_RETURN(Settings settings,
                                 read_settings(Ort::ConstSessionOptions(session)));
        *made = std::make_unique<Provider>(std::move(settings), logger).release();
        return {};
      });
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* provider) noexcept {
      delete static_cast<Provider*>(provider);
    };
    ValidateCompiledModelCompatibilityInfo =
        [](OrtEpFactory*, const OrtHardwareDevice* const*, std::size_t, const char* info,
           OrtCompiledModelCompatibility* result) noexcept -> OrtStatus* {
      return guarded([&]() -> Status {
        *result = can_load(info) ? OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL
                                 : OrtCompiledModelCompatibility_EP_UNSUPPORTED;
        return {};
      });
    };
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** allocator) noexcept -> OrtStatus* {
      *allocator = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
      *transfer = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept -> bool { return false; };
  }
  ~Factory() {
    if (own_device_ != nullptr) ep_api().ReleaseHardwareDevice(own_device_);
  }
  Factory(const Factory&) = delete;
  Factory& operator=(const Factory&) = delete;

 private:
  Status supported_devices(std::span<const OrtHardwareDevice* const> devices,
                           std::span<OrtEpDevice*> out, std::size_t* made) {
    *made = 0;
    const OrtHardwareDevice* used = nullptr;
    if (virtual_) {
      if (own_device_ == nullptr) {
        Ort::KeyValuePairs metadata;
        metadata.Add(kOrtHardwareDevice_MetadataKey_IsVirtual, "1");
        Ort::ThrowOnError(ep_api().CreateHardwareDevice(OrtHardwareDeviceType_NPU, kVendorId, 1,
                                                        kVendor, metadata, &own_device_));
      }
      used = own_device_;
    }
    for (const OrtHardwareDevice* device : devices)
      if (used == nullptr && Ort::GetApi().HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU)
        used = device;
    if (used == nullptr || out.empty()) return {};
    Ort::KeyValuePairs metadata, options;
    metadata.Add("simulated", "1");
    Ort::ThrowOnError(ep_api().CreateEpDevice(this, used, metadata, options, out.data()));
    *made = 1;
    return {};
  }

  bool virtual_ = false;
  OrtHardwareDevice* own_device_ = nullptr;
};

}  // namespace
}  // namespace tenonnx::simnpu

extern "C" {

[[gnu::visibility("default")]] OrtStatus* CreateEpFactories(const char* registered,
                                                            const OrtApiBase* base,
                                                            const OrtLogger*,
                                                            OrtEpFactory** factories,
                                                            std::size_t room, std::size_t* made) {
  // Before InitApi there is no way to make a status of its own: a host that is too old is refused
  // by handing out nothing.
  *made = 0;
  if (base->GetApi(ORT_API_VERSION) == nullptr) return nullptr;
  Ort::InitApi(base->GetApi(ORT_API_VERSION));
  return tenonnx::simnpu::guarded([&]() -> tenonnx::Status {
    TENONNX_RETURN_IF_ERROR(tenonnx::adopt_onnxruntime(*base));
    if (room < 1) return tenonnx::InvalidArgument("no room for a factory");
    factories[0] = std::make_unique<tenonnx::simnpu::Factory>(registered).release();
    *made = 1;
    return {};
  });
}

[[gnu::visibility("default")]] OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<tenonnx::simnpu::Factory*>(factory);
  return nullptr;
}

}  // extern "C"
