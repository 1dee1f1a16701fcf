"""Kernel families and what a GEMM's name tells."""

import pytest

from core.analysis.families import FAMILIES, decode_gemm_name, family

AT = "void at::native::"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "gemm"),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "gemm"),
        (
            "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel",
            "gemm",
        ),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(Params)", "gemm"),
        ("Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1", "gemm"),
        ("void gemv2T_kernel_val<int, int, float, float>(cublasGemvParams<float>)", "gemm"),
        ("void splitKreduce_kernel<float, float>(cublasSplitKParams<float>)", "gemm"),
        ("triton_tem_fused__unsafe_view_gelu_mm_mul_t_view_1", "gemm"),
        ("triton_tem_fused_mm_0", "gemm"),
        ("triton_poi_fused__unsafe_view_gelu_mul_0", "fused"),
        ("triton_red_fused_mm_native_layer_norm_3", "fused"),
        ("triton_per_fused__softmax_0", "fused"),
        ("graph_0_cpp_fused_gelu_mul_0", "fused"),
        ("_geglu_tanh_forward_kernel", "liger"),
        ("_swiglu_backward_kernel", "liger"),
        ("_rms_norm_forward_kernel", "liger"),
        ("liger_cross_entropy_kernel", "liger"),
        ("_copy_page_indices_kernel", "triton"),
        ("_layer_norm_fwd_1pass_kernel", "norm"),
        (f"{AT}vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)", "elementwise"),
        (f"{AT}unrolled_elementwise_kernel<at::native::GeluCUDAKernelImpl>(int)", "elementwise"),
        (f"{AT}vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)", "fill"),
        (f"{AT}elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>(int)", "copy"),
        (f"{AT}(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)", "copy"),
        (f"{AT}(anonymous namespace)::multi_tensor_apply_kernel<Metadata<2>, Copy<float, float> >(int)", "copy"),
        (f"{AT}reduce_kernel<512, 1, at::native::ReduceOp<float> >(at::native::ReduceOp<float>)", "reduction"),
        (f"{AT}(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)", "norm"),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>(cudnnTensorStruct)", "norm"),
        ("vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(vllm::_typeConvert<c10::BFloat16>)", "norm"),
        (f"{AT}(anonymous namespace)::cunn_SoftMaxForwardReg<float>(float*)", "softmax"),
        ("pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits>", "attention"),
        ("fmha_cutlassB_f32_aligned_64x64_k64_dropout_sm80(Params)", "attention"),
        ("attn_fwd", "attention"),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_kernel_cudnn", "conv"),
        ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(float)", "conv"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective"),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)", "collective"),
        ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(int)", "other"),
        ("Kernel", "other"),
        ("", "other"),
    ],
)
def test_family(name, expected):
    assert family(name) == expected


@pytest.mark.parametrize(("kind", "expected"), [("memcpy", "copy"), ("memset", "fill")])
def test_kind_goes_before_the_name(kind, expected):
    assert family("gemm", kind) == expected


def test_every_family_is_explained_once():
    keys = [key for key, _, _ in FAMILIES]
    assert len(set(keys)) == len(keys) == 14
    assert all(title and sentence.endswith(".") for _, title, sentence in FAMILIES)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
            "The name says: architecture sm90, tile 256x128, K-block 64 by 4 stages, cluster 1x2, "
            "bias added in the epilogue, layout letters TNT.",
        ),
        (
            "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_TNN",
            "The name says: architecture sm90, tile 64x8, K-block 64 by 16 stages, cluster 1x2, layout letters TNN.",
        ),
        (
            "nvjet_tst_192x8_64x8_4x1_v_bz_TNT",
            "The name says: tile 192x8, K-block 64 by 8 stages, cluster 4x1, layout letters TNT.",
        ),
        (
            "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
            "The name says: architecture ampere, tensor-core instruction 16816, tile 128x128, K-block 32 by 5 stages, "
            "layout tn (n: as stored, t: transposed).",
        ),
        (
            "volta_sgemm_32x32_sliced1x4_nt",
            "The name says: architecture volta, tile 32x32, layout nt (n: as stored, t: transposed).",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(x)",
            "The name says: architecture sm80, tile 128x128, K-block 8 by 4 stages, "
            "layout nn (n: as stored, t: transposed).",
        ),
        (
            "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x32_stage4_warpsize2x2x1",
            "The name says: architecture sm80, tile 128x64, K-block 32 by 4 stages.",
        ),
        (
            "Cijk_Alik_Bljk_BBS_BH_UserArgs_MT256x192x64_MI16x16x1",
            "The name says: tile 256x192, K-block 64, index order of the operands Alik, Bljk.",
        ),
        ("triton_poi_fused_gelu_0", None),
        ("Memset (Device)", None),
    ],
)
def test_decode_gemm_name(name, expected):
    assert decode_gemm_name(name) == expected
