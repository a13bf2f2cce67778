"""Architectures that are known by name and not read: what each keeps that no layer here describes.

Source: modeling_*.py of Hugging Face transformers 5.23.0, https://github.com/huggingface/transformers; for names that
        are not in it, the config.json of the maker
"""

_SIDE_BY_SIDE = "every layer has attention and a recurrent state side by side; a layer here has one of the two"
_ENCODER_DECODER = "it has an encoder beside its decoder, and a cache for both; only decoders are read"

NOT_READ = {
    "hymba": _SIDE_BY_SIDE,
    "mllama": "layers that attend to images would have to be described",
    "rwkv": "it has no attention, and a state of another kind; only hybrids are read",
    "t5": _ENCODER_DECODER,
    "bart": _ENCODER_DECODER,
    "whisper": _ENCODER_DECODER,
}

_NAMES = """
afmoe apertus aria aria_text axk1 axk2 bailing_hybrid beam bert bert-generation big_bird bigbird_pegasus biogpt
bitnet blenderbot blenderbot-small blip blip-2 blt camembert chameleon cohere2_moe cohere_compass
cohere_compass_text cosmos3_edge cosmos3_omni cpmant ctrl data2vec-text deepseek_ocr2 deepseek_vl deepseek_vl_hybrid
diffllama diffusion_gemma doge dots3_note dots3_note_text electra emu3 ernie ernie4_5_vl_moe evolla fast_vlm
flex_olmo flint florence2 fuyu gemma4_assistant gemma4_unified_assistant git glm5_next glm_ocr glmga got_ocr2
gpt-sw3 gpt_neox_japanese granite4_vision granite_docling granite_swa granitemoe_swa granitemoeshared hrm_text
hunyuan_vl hy_v3 hy_v4 hyperclovax hyperclovax_vision_v2 idefics idefics2 inkling2 inkling2_text inkling_mm_model
inkling_text instructblip instructblipvideo internlm3 iquestcoder jais2 janus jetmoe kolibri1 kosmos-2 kosmos-2.5
lfm3 lfm3_vl lighton_ocr longcat_flash marian mbart megatron-bert mellum minicpm3 minicpm_ocr minicpmv4_6
minicpmv4_7 mistral_large4 modernbert-decoder molmo2 moshi moss_transcribe_diarize muse_glimmer muse_spark musicgen
musicgen_melody mvp nanochat nemotron_h_omni olmo_hybrid openai-gpt paddleocr_vl pegasus perception_lm persimmon pi0
pix2struct plbart pp_chart2table pp_formulanet prophetnet qianfan_ocr qwen4_exp qwen4_exp_text reformer rembert
roberta roberta-prelayernorm roc_bert roformer shieldgemma2 t5gemma2 trocr udop unlimited_ocr vaultgemma
video_llama_3 video_llava vipllava vision-encoder-decoder xglm xlm xlm-roberta xlm-roberta-xl xlnet xlstm xmod youtu
zamba zaya
"""
# Decoders that transformers has a class for and that no reader here describes: counted on that class, where it is
# installed, and never by their fields' names alone.
ON_THEIR_CLASS = frozenset(_NAMES.split())
