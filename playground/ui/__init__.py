"""The page: Gradio components, what they show and what they do."""
