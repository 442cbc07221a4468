"""Raw data as it comes: images, passages, embeddings."""
